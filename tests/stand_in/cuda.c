/* A stand-in for NVIDIA's driver: device memory is this process's, kernels do nothing, and STAND_IN_FAULT says what goes wrong:
   "illegal:N" the N-th synchronisation reports an illegal address, "lost:N" the N-th launch and all calls after it an unknown error,
   "memory:N" the N-th allocation finds no memory. Once lost, always lost, as with a real context. Only the process that finds and
   removes the file STAND_IN_ONCE has the fault. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NO_MEMORY = 2, UNKNOWN = 999, ILLEGAL = 700 };
typedef int status;
static int sticky, launches, synchronisations, allocations;

static int fault(const char *kind, int count) {
    const char *asked = getenv("STAND_IN_FAULT");
    size_t length = strlen(kind);
    const char *once = getenv("STAND_IN_ONCE");
    int now = asked && !strncmp(asked, kind, length) && asked[length] == ':' && atoi(asked + length + 1) == count;
    return now && (!once || !unlink(once));
}

status cuInit(unsigned flags) { (void)flags; return sticky; }
status cuDriverGetVersion(int *version) { *version = 13000; return OK; }
status cuDeviceGetCount(int *count) { *count = 1; return OK; }
status cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }
status cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, length, "Stand-in GPU"); return OK; }
status cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)4 << 30; return OK; }
status cuDeviceGetPCIBusId(char *text, int length, int device) { (void)device; snprintf(text, length, "0000:00:00.0"); return OK; }
status cuDeviceGetUuid(void *uuid, int device) { (void)device; memset(uuid, 0, 16); return OK; }
status cuDeviceGetUuid_v2(void *uuid, int device) { return cuDeviceGetUuid(uuid, device); }
status cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 75: *value = 8; break;          /* compute capability, major */
    case 76: *value = 0; break;          /* and minor */
    case 97: *value = 163 << 10; break;  /* shared memory of a block */
    case 81: *value = 164 << 10; break;  /* and of a multiprocessor */
    case 16: *value = 8; break;          /* multiprocessors */
    case 38: *value = 40 << 20; break;   /* L2 */
    default: *value = 1;
    }
    return OK;
}

static int context;
status cuDevicePrimaryCtxRetain(void **out, int device) { (void)device; *out = &context; return sticky; }
status cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return sticky; }
status cuCtxGetCurrent(void **out) { *out = &context; return sticky; }
status cuCtxSetCurrent(void *given) { (void)given; return sticky; }
status cuCtxSynchronize(void) { return sticky; }
status cuCtxGetDevice(int *device) { *device = 0; return sticky; }
status cuMemGetInfo_v2(size_t *free, size_t *total) { *free = (size_t)3 << 30; *total = (size_t)4 << 30; return sticky; }

status cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    if (sticky) return sticky;
    if (fault("memory", ++allocations)) return NO_MEMORY;
    *address = (uint64_t)(uintptr_t)malloc(bytes);
    return *address ? OK : NO_MEMORY;
}
status cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return sticky; }
static status copy(void *to, const void *from, size_t bytes) { if (!sticky) memcpy(to, from, bytes); return sticky; }
status cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s) { (void)s; return copy((void *)(uintptr_t)to, from, bytes); }
status cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s) { (void)s; return copy(to, (void *)(uintptr_t)from, bytes); }
status cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s) { (void)s; return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes); }
status cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void *s) { (void)s; if (!sticky) memset((void *)(uintptr_t)at, value, bytes); return sticky; }
status cuMemsetD32Async(uint64_t at, unsigned value, size_t count, void *s) {
    (void)s;
    for (size_t i = 0; !sticky && i < count; i++) ((unsigned *)(uintptr_t)at)[i] = value;
    return sticky;
}

status cuStreamSynchronize(void *stream) {
    (void)stream;
    if (fault("illegal", ++synchronisations)) sticky = ILLEGAL;
    return sticky;
}
status cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = &context; return sticky; }
status cuStreamDestroy_v2(void *stream) { (void)stream; return sticky; }
status cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream; (void)event; (void)flags; return sticky; }
status cuEventCreate(void **event, unsigned flags) { (void)flags; *event = &context; return sticky; }
status cuEventRecord(void *event, void *stream) { (void)event; (void)stream; return sticky; }
status cuEventSynchronize(void *event) { (void)event; return cuStreamSynchronize(0); }
status cuEventElapsedTime(float *ms, void *a, void *b) { (void)a; (void)b; *ms = 1; return sticky; }
status cuEventElapsedTime_v2(float *ms, void *a, void *b) { return cuEventElapsedTime(ms, a, b); }
status cuEventDestroy_v2(void *event) { (void)event; return sticky; }

status cuModuleLoadData(void **module, const void *image) { (void)image; *module = &context; return sticky; }
status cuModuleUnload(void *module) { (void)module; return sticky; }
status cuModuleGetFunction(void **function, void *module, const char *name) { (void)module; (void)name; *function = &context; return sticky; }
status cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; (void)attribute; (void)value; return sticky; }
status cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
    (void)function; (void)threads; (void)shared;
    *blocks = 1;
    return sticky;
}
status cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared, void *stream,
                      void **arguments, void **extra) {
    (void)function; (void)x; (void)y; (void)z; (void)tx; (void)ty; (void)tz; (void)shared; (void)stream; (void)arguments; (void)extra;
    if (fault("lost", ++launches)) sticky = UNKNOWN;
    return sticky;
}
status cuGetErrorName(int error, const char **text) { (void)error; *text = "an error"; return OK; }
status cuGetErrorString(int error, const char **text) { (void)error; *text = "an error"; return OK; }
