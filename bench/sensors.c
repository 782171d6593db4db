/* A thread sleeps until it gets a log, then samples at once, so that a burst of 300 us has a
 * sample too. Functions and constants are those of nvml.h; the documentation of
 * nvmlDeviceGetPowerUsage says that GPUs since Ampere return the mean over the last second. */
#include "bench/sensors.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS 5000000L
enum { NVML_CLOCK_SM = 1 };

#define NVML_CALLS(CALL)                                                                           \
    CALL(nvmlInit_v2, (void))                                                                      \
    CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *, void **))                                \
    CALL(nvmlDeviceGetClockInfo, (void *, int, unsigned *))                                        \
    CALL(nvmlDeviceGetPowerUsage, (void *, unsigned *))                                            \
    CALL(nvmlSystemGetDriverVersion, (char *, unsigned))

struct Sensors {
#define CALL(name, parameters) int(*name) parameters;
    NVML_CALLS(CALL)
#undef CALL
    void *device;
    char driver[80];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    SensorLog *log;    /* NULL: idle */
    bool unseen;       /* no sample has been taken for this log */
    bool busy, ending; /* busy: a sample is being taken; ending: the thread must end */
};

static bool sample(Sensors *sensors, double *mhz, double *watt) {
    unsigned clock = 0, milliwatt = 0;
    if (sensors->nvmlDeviceGetClockInfo(sensors->device, NVML_CLOCK_SM, &clock) != 0) return false;
    if (sensors->nvmlDeviceGetPowerUsage(sensors->device, &milliwatt) != 0) milliwatt = 0;
    *mhz = clock;
    *watt = milliwatt * 1e-3;
    return true;
}

static void *watch(void *argument) {
    Sensors *sensors = argument;
    pthread_mutex_lock(&sensors->lock);
    while (!sensors->ending) {
        SensorLog *log = sensors->log;
        if (log == NULL) {
            pthread_cond_wait(&sensors->changed, &sensors->lock);
            continue;
        }
        double mhz, watt;
        sensors->busy = true;
        sensors->unseen = false;
        pthread_mutex_unlock(&sensors->lock);
        bool got = sample(sensors, &mhz, &watt);
        pthread_mutex_lock(&sensors->lock);
        sensors->busy = false;
        if (got && log->count < SENSOR_SAMPLES)
            log->mhz[log->count] = mhz, log->watt[log->count++] = watt;
        pthread_cond_broadcast(&sensors->changed);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PERIOD_NS;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
        while (sensors->log == log && !sensors->ending)
            if (pthread_cond_timedwait(&sensors->changed, &sensors->lock, &until) != 0) break;
    }
    pthread_mutex_unlock(&sensors->lock);
    return NULL;
}

static const char *open_nvml(Sensors *sensors, const char *bus) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) return "libnvidia-ml.so.1 does not load";
#define CALL(name, parameters)                                                                     \
    *(void **)&sensors->name = dlsym(library, #name);                                              \
    if (sensors->name == NULL) return "NVML has no " #name;
    NVML_CALLS(CALL)
#undef CALL
    double mhz, watt;
    if (sensors->nvmlInit_v2() != 0) return "nvmlInit_v2 fails";
    if (sensors->nvmlDeviceGetHandleByPciBusId_v2(bus, &sensors->device) != 0)
        return "NVML does not know the device";
    if (!sample(sensors, &mhz, &watt)) return "NVML does not know the clock of the SMs";
    if (sensors->nvmlSystemGetDriverVersion(sensors->driver, sizeof sensors->driver) != 0)
        sensors->driver[0] = 0;
    return NULL;
}

Sensors *sensors_open(const char *bus, const char **lack) {
    Sensors *sensors = calloc(1, sizeof *sensors);
    *lack = sensors != NULL ? open_nvml(sensors, bus) : "no memory";
    if (*lack == NULL) {
        pthread_mutex_init(&sensors->lock, NULL);
        pthread_cond_init(&sensors->changed, NULL);
        if (pthread_create(&sensors->thread, NULL, watch, sensors) == 0) return sensors;
        *lack = "the thread cannot be started";
    }
    free(sensors);
    return NULL;
}

void sensors_close(Sensors *sensors) {
    if (sensors == NULL) return;
    pthread_mutex_lock(&sensors->lock);
    sensors->ending = true;
    pthread_cond_broadcast(&sensors->changed);
    pthread_mutex_unlock(&sensors->lock);
    pthread_join(sensors->thread, NULL);
    free(sensors);
}

void sensors_watch(Sensors *sensors, SensorLog *log) {
    if (sensors == NULL) return;
    pthread_mutex_lock(&sensors->lock);
    sensors->log = log;
    sensors->unseen = true;
    pthread_cond_broadcast(&sensors->changed);
    pthread_mutex_unlock(&sensors->lock);
}

void sensors_rest(Sensors *sensors) {
    if (sensors == NULL) return;
    pthread_mutex_lock(&sensors->lock);
    while (sensors->log != NULL && sensors->unseen)
        pthread_cond_wait(&sensors->changed, &sensors->lock);
    sensors->log = NULL;
    pthread_cond_broadcast(&sensors->changed);
    while (sensors->busy) pthread_cond_wait(&sensors->changed, &sensors->lock);
    pthread_mutex_unlock(&sensors->lock);
}

const char *sensors_driver(const Sensors *sensors) {
    return sensors != NULL && sensors->driver[0] ? sensors->driver : "?";
}
