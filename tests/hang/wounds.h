/* The second part of hang-test, which needs no GPU: see wounds.c. */
#ifndef TESTS_HANG_WOUNDS_H
#define TESTS_HANG_WOUNDS_H

int wounds_run(int *failed); /* number of passed ones; failures are printed and counted */

#endif
