/* SM clock and power while something runs, through NVML (opened by dlopen), sampled by a thread of its own. */
#ifndef BENCH_SENSORS_H
#define BENCH_SENSORS_H

typedef struct Sensors Sensors;

#define SENSOR_SAMPLES 4096

/* Samples taken while one contender ran; further ones are dropped when it is full. */
typedef struct SensorLog {
    double mhz[SENSOR_SAMPLES];  /* nvmlDeviceGetClockInfo(NVML_CLOCK_SM): the clock at that moment */
    double watt[SENSOR_SAMPLES]; /* nvmlDeviceGetPowerUsage: on this hardware the mean over the last second */
    int count;
} SensorLog;

/* The device with this PCI bus id; NULL where there is no NVML or it does not know the clock, and why. All calls below take NULL. */
Sensors *sensors_open(const char *bus, const char **lack);
void sensors_close(Sensors *sensors);

/* From now on a sample at once and then every 5 ms goes into `log`, until sensors_rest: at least one, and the last is in it by then. */
void sensors_watch(Sensors *sensors, SensorLog *log);
void sensors_rest(Sensors *sensors);

/* "580.159.03", or "?" */
const char *sensors_driver(const Sensors *sensors);

#endif
