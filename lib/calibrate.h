/* lib, private: the numbers of a machine from the times of kernels. */
#ifndef PIPEC_LIB_CALIBRATE_H
#define PIPEC_LIB_CALIBRATE_H

#include "lib/machine.h"
#include "lib/private.h"

extern const char calibrate_text[]; /* lib/calibrate.pipe */

/* Seconds of one launch of each kernel */
typedef struct CalibrationTimes {
    double matrix, memory, again, latency, barrier, launch, blocks;
} CalibrationTimes;

/* The row that follows; a number that cannot be, of a time that is 0 or too long, is 0 */
void calibrate_row(const DeviceFacts *device, const CalibrationTimes *times, Measured *out);

#endif
