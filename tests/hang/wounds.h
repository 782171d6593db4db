/* The second half of hang-test, which needs no GPU: see wounds.c. */
#ifndef TESTS_HANG_WOUNDS_H
#define TESTS_HANG_WOUNDS_H

int wounds_run(int *failed); /* how many passed; those that fail are printed and counted */

#endif
