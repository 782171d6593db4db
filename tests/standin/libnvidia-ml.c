/* A libnvidia-ml.so.1 of one device, the stand-in driver's first, whose SMs run at 1500 MHz with
 * 600 W. */
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
enum { FINE = 0, NOT_FOUND = 6, NOT_SUPPORTED = 3 }; /* NVML_ERROR_.. */

EXPORTED int nvmlInit_v2(void);
int nvmlInit_v2(void) { return FINE; }

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    static char only;
    *device = &only;
    return strcmp(bus, "0000:01:00.0") == 0 ? FINE : NOT_FOUND;
}

EXPORTED int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
    *mhz = 1500;
    return device != NULL && type == 1 ? FINE : NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatt);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatt) {
    *milliwatt = 600000;
    return device != NULL ? FINE : NOT_SUPPORTED;
}

EXPORTED int nvmlSystemGetDriverVersion(char *text, unsigned length);
int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    snprintf(text, length, "1.2.3");
    return FINE;
}
