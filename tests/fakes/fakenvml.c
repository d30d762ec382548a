/* A small libnvidia-ml.so.1 for tests. Its readings come from the text file $FAKE_NVML, lines of "GPU KEY VALUE"
   (GPU -1 is every GPU and the system), read at every call, so that a test changes a reading while a program runs.
   A key with the value "unsupported" makes its function answer 3; "lost 1" makes every call on that GPU answer 15, and
   with "blocks 1" none answers until that is gone. "mig N" cuts a GPU into N slices; "processI" is "PID BYTES".
   Build with -DOLD for the names a driver of 2017 has, without those that came later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int ret;
typedef unsigned long long u64;
typedef struct gpu { int number; } *dev;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMED_OUT = 10, LOST = 15 };

/* 0 to 15 are GPUs; 16 + 4 * n + i is MIG slice i of GPU n. */
static struct gpu gpus[80];
static int running, registered[80];

static int look(int gpu, const char *key, char *out, size_t size) {
  const char *path = getenv("FAKE_NVML");
  FILE *file = path ? fopen(path, "r") : 0;
  char line[256], name[64], value[160];
  int number, found = 0;
  if (!file) return 0;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "%d %63s %159[^\n]", &number, name, value) == 3 && (number == gpu || number < 0) && !strcmp(name, key)) {
      snprintf(out, size, "%s", value);
      found = 1;
    }
  fclose(file);
  return found;
}

static u64 number(int gpu, const char *key, u64 otherwise) {
  char text[160];
  return look(gpu, key, text, sizeof text) ? strtoull(text, 0, 10) : otherwise;
}

static ret state(dev d, const char *key) {
  char text[160];
  if (!running) return UNINITIALIZED;
  while (number(d->number, "blocks", 0)) usleep(10000);
  if (number(d->number, "lost", 0)) return LOST;
  return look(d->number, key, text, sizeof text) && !strcmp(text, "unsupported") ? UNSUPPORTED : OK;
}

static ret get32(dev d, const char *key, u64 otherwise, unsigned *out) {
  ret code = state(d, key);
  if (!code) *out = (unsigned)number(d->number, key, otherwise);
  return code;
}

static ret get64(dev d, const char *key, u64 otherwise, u64 *out) {
  ret code = state(d, key);
  if (!code) *out = number(d->number, key, otherwise);
  return code;
}

static ret text(const char *from, char *out, unsigned size) {
  if (strlen(from) >= size) return TOO_SMALL;
  strcpy(out, from);
  return OK;
}

static ret start(void) {
  char failure[160];
  for (int i = 0; i < 80; i++) gpus[i].number = i;
  if (look(-1, "init", failure, sizeof failure)) return atoi(failure);
  running++;
  return OK;
}

ret nvmlShutdown(void) { running--; return OK; }
ret nvmlSystemGetDriverVersion(char *out, unsigned size) {
  char name[160] = "550.54.15";
  look(-1, "driver", name, sizeof name);
  return text(name, out, size);
}

static ret count(unsigned *out) { *out = (unsigned)number(-1, "count", 1); return running ? OK : UNINITIALIZED; }
static ret by_index(unsigned index, dev *out) {
  if (index >= number(-1, "count", 1)) return INVALID;
  *out = &gpus[index];
  return OK;
}

static void uuid(int number, char *out) {
  if (number < 16) sprintf(out, "GPU-%08x-0000-0000-0000-000000000000", 0xa0 + number);
  else sprintf(out, "MIG-%08x-0000-0000-0000-000000000000", number);
}

ret nvmlDeviceGetUUID(dev d, char *out, unsigned size) { char name[96]; uuid(d->number, name); return text(name, out, size); }
ret nvmlDeviceGetHandleByUUID(const char *name, dev *out) {
  char own[96];
  for (int i = 0; i < 80; i++) { uuid(i, own); if (!strcmp(own, name)) { *out = &gpus[i]; return OK; } }
  return NOT_FOUND;
}
ret nvmlDeviceGetDeviceHandleFromMigDeviceHandle(dev d, dev *out) { *out = &gpus[(d->number - 16) / 4]; return d->number < 16 ? INVALID : OK; }
ret nvmlDeviceGetGpuInstanceId(dev d, unsigned *out) { *out = (d->number - 16) % 4; return d->number < 16 ? UNSUPPORTED : OK; }

ret nvmlDeviceGetName(dev d, char *out, unsigned size) {
  char name[160] = "NVIDIA H200";
  look(d->number, "name", name, sizeof name);
  return text(name, out, size);
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; };
static void address(dev d, char *out, const char *form) { sprintf(out, form, 0, (int)number(d->number, "bus", 7 + 8 * d->number)); }

struct memory { u64 total, free, used; };
ret nvmlDeviceGetMemoryInfo(dev d, struct memory *m) {
  ret code = state(d, "memory_used");
  m->total = number(d->number, "memory_total", 150754820096ULL);
  m->used = number(d->number, "memory_used", 1048576);
  m->free = m->total - m->used;
  return code;
}

ret nvmlDeviceGetUtilizationRates(dev d, unsigned *rates) {
  ret code = get32(d, "utilization", 0, &rates[0]);
  return code ? code : get32(d, "memory_utilization", 0, &rates[1]);
}
ret nvmlDeviceGetTemperature(dev d, int sensor, unsigned *out) { return sensor ? INVALID : get32(d, "temperature", 30, out); }
ret nvmlDeviceGetPowerUsage(dev d, unsigned *out) { return get32(d, "power_mw", 75000, out); }
ret nvmlDeviceGetTotalEnergyConsumption(dev d, u64 *out) { return get64(d, "energy_mj", 1000, out); }
ret nvmlDeviceGetClockInfo(dev d, int kind, unsigned *out) { return get32(d, kind == 1 ? "sm_clock" : "memory_clock", 345, out); }
ret nvmlDeviceGetTotalEccErrors(dev d, int kind, int counter, u64 *out) {
  static const char *keys[] = {"ecc_corrected", "ecc_uncorrected", "ecc_lifetime_corrected", "ecc_lifetime_uncorrected"};
  return get64(d, keys[!!kind + 2 * !!counter], 0, out);
}
ret nvmlDeviceGetPcieReplayCounter(dev d, unsigned *out) { return get32(d, "pcie_replay", 0, out); }
ret nvmlDeviceGetCurrentClocksThrottleReasons(dev d, u64 *out) { return get64(d, "throttle", 1, out); }

struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };
static ret processes(dev d, unsigned *size, struct process *list) {
  unsigned room = *size;
  ret code = get32(d, "processes", 0, size);
  if (code || *size > room) return code ? code : TOO_SMALL;
  for (unsigned i = 0; list && i < *size; i++) {
    char key[32], text[160] = "0 0";
    snprintf(key, sizeof key, "process%u", i);
    look(d->number, key, text, sizeof text);
    memset(&list[i], 0, sizeof list[i]);
    sscanf(text, "%u %llu", &list[i].pid, &list[i].memory);
  }
  return OK;
}

struct field { unsigned id, scope; long long timestamp, latency; int type; ret code; union { double real; unsigned u32; u64 u64; } value; };
ret nvmlDeviceGetFieldValues(dev d, int count, struct field *fields) {
  ret code = state(d, "fields");
  for (int i = 0; !code && i < count; i++) {
    struct field *f = &fields[i];
    char key[32], type[40] = "";
    snprintf(key, sizeof key, "field%u", f->id);
    if (f->id == 138 || f->id == 139) f->code = f->scope == 0xffffffffu ? OK : INVALID;
    else f->code = OK;
    if (!f->code) f->code = look(d->number, key, type, sizeof type) ? state(d, key) : UNSUPPORTED;
    /* As a driver 580 answers: PCIe bytes (197, 198) have 32 bits. */
    f->type = f->id == 82 || f->id == 186 || ((f->id == 197 || f->id == 198) && !number(d->number, "wide", 0)) ? 1 : 3;
    if (f->type == 1) f->value.u32 = (unsigned)number(d->number, key, 0);
    else f->value.u64 = number(d->number, key, 0);
    snprintf(key, sizeof key, "field%u_double", f->id);
    if (look(d->number, key, type, sizeof type)) { f->type = 0; f->value.real = atof(type); f->code = OK; }
  }
  return code;
}

struct event { dev device; u64 type, data; unsigned gpu_instance, compute_instance; };
ret nvmlEventSetCreate(void **set) { *set = registered; return state(&gpus[0], "events"); }
ret nvmlEventSetFree(void *set) { return set == registered ? OK : INVALID; }
ret nvmlDeviceRegisterEvents(dev d, u64 types, void *set) {
  registered[d->number] = types == 8;
  return set == registered ? state(d, "xid") : INVALID;
}

/* An XID arrives once: when "GPU xid_count" has grown since the last look, with the number of "GPU xid". */
static ret wait_event(void *set, struct event *event, unsigned timeout_ms) {
  static u64 seen[80];
  if (set != registered) return INVALID;
  for (unsigned waited = 0; waited <= timeout_ms; waited += 10) {
    for (int i = 0; i < 16; i++) {
      u64 now = registered[i] ? number(i, "xid_count", 0) : 0;
      if (now > seen[i]) {
        seen[i] = now;
        *event = (struct event){&gpus[i], 8, number(i, "xid", 0), ~0u, ~0u};
        return OK;
      }
    }
    if (number(-1, "wait_fails", 0)) return (ret)number(-1, "wait_fails", 0);
    usleep(10000);
  }
  return TIMED_OUT;
}

#ifndef OLD
static ret indexed(dev d, const char *name, int index, u64 otherwise, unsigned *out) {
  char key[40];
  snprintf(key, sizeof key, "%s%d", name, index);
  return get32(d, key, otherwise, out);
}

/* What only drivers of today have, and only the exporter asks. The numbers are those of a real H200. */
ret nvmlDeviceGetTemperatureThreshold(dev d, int kind, unsigned *out) {
  static const unsigned usual[] = {95, 89, 95, 87};
  return kind > 3 ? UNSUPPORTED : indexed(d, "threshold", kind, usual[kind], out);
}
struct margin { unsigned version; int celsius; };
ret nvmlDeviceGetMarginTemperature(dev d, struct margin *m) {
  return m->version != (sizeof *m | 1u << 24) ? 25 : get32(d, "margin", 55, (unsigned *)&m->celsius);
}
ret nvmlDeviceGetEnforcedPowerLimit(dev d, unsigned *out) { return get32(d, "power_enforced", 700000, out); }
ret nvmlDeviceGetPowerManagementLimit(dev d, unsigned *out) { return get32(d, "power_requested", 700000, out); }
ret nvmlDeviceGetPowerManagementDefaultLimit(dev d, unsigned *out) { return get32(d, "power_default", 700000, out); }
ret nvmlDeviceGetPowerManagementLimitConstraints(dev d, unsigned *least, unsigned *most) {
  ret code = get32(d, "power_min", 200000, least);
  return code ? code : get32(d, "power_max", 700000, most);
}
ret nvmlDeviceGetCurrPcieLinkGeneration(dev d, unsigned *out) { return get32(d, "pcie_generation", 5, out); }
ret nvmlDeviceGetMaxPcieLinkGeneration(dev d, unsigned *out) { return get32(d, "pcie_generation_max", 5, out); }
ret nvmlDeviceGetCurrPcieLinkWidth(dev d, unsigned *out) { return get32(d, "pcie_width", 16, out); }
ret nvmlDeviceGetMaxPcieLinkWidth(dev d, unsigned *out) { return get32(d, "pcie_width_max", 16, out); }
ret nvmlDeviceGetMaxClockInfo(dev d, int kind, unsigned *out) { return indexed(d, "clock_max", kind, 1980, out); }
ret nvmlDeviceGetRemappedRows(dev d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
  unsigned *outs[] = {corrected, uncorrected, pending, failed};
  for (int i = 0; i < 4; i++) { ret code = indexed(d, "rows", i, 0, outs[i]); if (code) return code; }
  return OK;
}
ret nvmlDeviceGetEncoderUtilization(dev d, unsigned *out, unsigned *us) { *us = 167000; return get32(d, "encoder", 0, out); }
ret nvmlDeviceGetDecoderUtilization(dev d, unsigned *out, unsigned *us) { *us = 167000; return get32(d, "decoder", 0, out); }
ret nvmlDeviceGetNvLinkState(dev d, unsigned link, unsigned *out) { return indexed(d, "link", (int)link, 1, out); }
struct fabric { unsigned version; unsigned char cluster[16]; ret status; unsigned clique; unsigned char state; unsigned health; };
ret nvmlDeviceGetGpuFabricInfoV(dev d, struct fabric *f) {
  unsigned state_now = 0, status = 0;
  ret code = f->version != (sizeof *f | 2u << 24) ? 25 : get32(d, "fabric", 0, &state_now);
  if (!code) code = get32(d, "fabric_status", 0, &status);
  f->state = (unsigned char)state_now;
  f->status = (ret)status;
  return code;
}
ret nvmlDeviceGetMigMode(dev d, unsigned *current, unsigned *pending) {
  ret code = get32(d, "mig", 0, pending);
  *pending = *current = *pending > 0;
  return code;
}
ret nvmlDeviceGetMaxMigDeviceCount(dev d, unsigned *out) { (void)d; *out = 4; return OK; }
ret nvmlDeviceGetMigDeviceHandleByIndex(dev d, unsigned index, dev *out) {
  if (index >= number(d->number, "mig", 0)) return NOT_FOUND;
  *out = &gpus[16 + 4 * d->number + index];
  return OK;
}
struct attributes { unsigned counts[6], gpu_slices, compute_slices; u64 memory_mib; };
ret nvmlDeviceGetAttributes_v2(dev d, struct attributes *a) {
  memset(a, 0, sizeof *a);
  a->memory_mib = number(d->number, "slice_mib", 16384);
  return get32(d, "slices", 1, &a->gpu_slices);
}
struct support { unsigned version, supported; };
ret nvmlGpmQueryDeviceSupport(dev d, struct support *s) { return get32(d, "gpm", 0, &s->supported); }
ret nvmlGpmSampleAlloc(void **sample) { *sample = calloc(1, sizeof(dev)); return OK; }
ret nvmlGpmSampleGet(dev d, void *sample) { *(dev *)sample = d; return state(d, "gpm"); }
ret nvmlGpmMigSampleGet(dev d, unsigned instance, void *sample) { return nvmlGpmSampleGet(&gpus[16 + 4 * d->number + instance], sample); }
struct gpm_metric { unsigned id; ret code; double value; char *texts[3]; };
struct gpm { unsigned version, count; void *before, *after; struct gpm_metric metrics[]; };
ret nvmlGpmMetricsGet(struct gpm *g) {
  for (unsigned i = 0; i < g->count; i++) {
    char key[32], text[160];
    snprintf(key, sizeof key, "gpm%u", g->metrics[i].id);
    g->metrics[i].code = look((*(dev *)g->after)->number, key, text, sizeof text) ? OK : UNSUPPORTED;
    if (!g->metrics[i].code) g->metrics[i].value = atof(text);
  }
  return OK;
}
#endif

#ifdef OLD
ret nvmlInit(void) { return start(); }
ret nvmlDeviceGetCount(unsigned *out) { return count(out); }
ret nvmlDeviceGetHandleByIndex(unsigned index, dev *out) { return by_index(index, out); }
ret nvmlDeviceGetComputeRunningProcesses(dev d, unsigned *size, void *list) { (void)list; return processes(d, size, 0); }
ret nvmlDeviceGetPciInfo_v2(dev d, char *out) { address(d, out, "%04X:%02X:00.0"); return OK; }
ret nvmlEventSetWait(void *set, struct event *event, unsigned ms) { return wait_event(set, event, ms); }
#else
ret nvmlInit_v2(void) { return start(); }
ret nvmlDeviceGetCount_v2(unsigned *out) { return count(out); }
ret nvmlDeviceGetHandleByIndex_v2(unsigned index, dev *out) { return by_index(index, out); }
ret nvmlDeviceGetComputeRunningProcesses_v3(dev d, unsigned *size, void *list) { return processes(d, size, list); }
ret nvmlDeviceGetCurrentClocksEventReasons(dev d, u64 *out) { return nvmlDeviceGetCurrentClocksThrottleReasons(d, out); }
ret nvmlDeviceGetPciInfo_v3(dev d, struct pci *out) { memset(out, 0, sizeof *out); address(d, out->address, "%08X:%02X:00.0"); return OK; }
ret nvmlEventSetWait_v2(void *set, struct event *event, unsigned ms) { return wait_event(set, event, ms); }
struct memory2 { unsigned version; u64 total, reserved, free, used; };
ret nvmlDeviceGetMemoryInfo_v2(dev d, struct memory2 *m) {
  struct memory old;
  ret code = nvmlDeviceGetMemoryInfo(d, &old);
  if (m->version != (sizeof *m | 2u << 24)) return 25;
  m->total = old.total; m->used = old.used; m->free = old.free; m->reserved = 0;
  return code;
}
#endif
