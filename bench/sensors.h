/* Samples the SM clock and power through NVML (opened by dlopen), in a separate thread. */
#ifndef BENCH_SENSORS_H
#define BENCH_SENSORS_H

typedef struct Sensors Sensors;

#define SENSOR_SAMPLES 4096

/* Samples of one contender; dropped when it is full. */
typedef struct SensorLog {
    /* nvmlDeviceGetClockInfo(NVML_CLOCK_SM): the present clock */
    double mhz[SENSOR_SAMPLES];
    /* nvmlDeviceGetPowerUsage: on this hardware the mean over the last second */
    double watt[SENSOR_SAMPLES];
    int count;
} SensorLog;

/* Opens the device with this PCI bus id; NULL and *lack if there is no NVML or it does not know
 * the clock. All calls below accept NULL. */
Sensors *sensors_open(const char *bus, const char **lack);
void sensors_close(Sensors *sensors);

/* Takes a sample at once and then every 5 ms into `log`, until sensors_rest, which waits for the
 * last one. */
void sensors_watch(Sensors *sensors, SensorLog *log);
void sensors_rest(Sensors *sensors);

/* "580.159.03", or "?" */
const char *sensors_driver(const Sensors *sensors);

#endif
