/* Writes when each kernel and copy of a program began and ended on the GPU: one line `start end name` each, in ns, to the
 * file that KERNEL_TIMES names. The program loads it itself: CUDA_INJECTION64_PATH=kernel-times.so (see iterations.py).
 * -DKERNEL=... names the newest record of a kernel that cupti_activity.h has. */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER (8 << 20)

static FILE *out;

static void requested(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *records = 0;
}

static void line(uint64_t start, uint64_t end, const char *name) {
    fprintf(out, "%llu %llu %s\n", (unsigned long long)start, (unsigned long long)end, name);
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const KERNEL *kernel = (const KERNEL *)record;
            line(kernel->start, kernel->end, kernel->name ? kernel->name : "?");
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const COPY *copy = (const COPY *)record;
            line(copy->start, copy->end, "(copy)");
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const FILL *fill = (const FILL *)record;
            line(fill->start, fill->end, "(fill)");
        }
    }
    size_t dropped = 0;
    if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
        fprintf(out, "dropped %zu\n", dropped);
    free(buffer);
    (void)size;
}

static void finish(void) {
    cuptiActivityFlushAll(1);
    fclose(out);
}

int InitializeInjection(void) {
    const char *path = getenv("KERNEL_TIMES");
    out = path ? fopen(path, "w") : NULL;
    if (!out)
        return 0;
    atexit(finish);
    return cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS &&
           cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
           cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS &&
           cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS;
}
