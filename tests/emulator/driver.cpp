// What this program calls of the CUDA driver and of NVRTC, on the host: kernels are compiled by g++ with `device.h`
// and run there. Memory ends at a page that nobody may touch, and is no zeros at first.
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

typedef int Result;
typedef void (*Kernel)(void**);
typedef void (*Launch)(Kernel, unsigned, unsigned, unsigned, void**);

struct Function {
    Kernel kernel;
    Launch launch;
};

struct Program {
    std::map<std::string, std::string> files;
    std::string log, code;
};

static const size_t PAGE = 4096;
static std::map<uintptr_t, std::pair<void*, size_t>> allocations;

static std::string folder() {
    std::string name = "/tmp/emulated.XXXXXX";
    return mkdtemp(name.data());
}

static std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

// Loads and stores that others may wait for, and shared memory of a size that the launch says.
static std::string for_host(const std::string& text) {
    static const std::regex load(R"(asm volatile\("ld[^"]*" : "=[rd]"\((\w+)\) : "l"\((\w+)\) : "memory"\);)");
    static const std::regex store(R"(asm volatile\("st[^"]*" : : "l"\((\w+)\), "[rd]"\((\w+)\) : "memory"\);)");
    static const std::regex dynamic(R"(extern __shared__ (\w+) (\w+)\[\];)");
    static const std::regex absent(R"(asm volatile\(\s*"\{\\n"\s*"\.reg \.pred missing[^;]*;[^:]*: "\+d"\(v\)\s*: "l"\(p\)\s*: "memory"\);)");
    std::string made = std::regex_replace(text, load, "$1 = emulated::load($2);");
    made = std::regex_replace(made, store, "emulated::store($1, $2);");
    made = std::regex_replace(made, absent, "if (absent(v)) v = load_relaxed(p);");
    return std::regex_replace(made, dynamic, "static $1*& $2 = ($1*&)emulated::dynamic_shared;");
}

// With a function for each kernel that takes the arguments of a launch.
static std::string with_calls(std::string text) {
    static const std::regex kernel(R"(__global__ void\s*(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\()");
    std::map<std::string, std::string> calls;
    for (std::sregex_iterator k(text.begin(), text.end(), kernel), end; k != end; ++k) {
        const std::string name = (*k)[1];
        calls[name] = "\nextern \"C\" void " + name + "__emulated(void** a) { emulated::call(" + name + ", a); }\n";
    }
    for (const auto& [name, call] : calls) text += call;
    return text;
}

extern "C" {

Result nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
const char* nvrtcGetErrorString(Result) { return "g++ failed"; }

Result nvrtcCreateProgram(Program** program, const char* text, const char*, int count, const char* const* headers,
                          const char* const* names) {
    *program = new Program;
    for (int n = 0; n < count; ++n) (*program)->files[names[n]] = with_calls(for_host(headers[n]));
    (*program)->files["source.cpp"] = with_calls(for_host(text));
    return 0;
}

Result nvrtcDestroyProgram(Program** program) { return delete *program, 0; }

Result nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    const std::string at = folder();
    for (auto& [name, text] : program->files) {
        const std::string path = at + "/" + name;
        if (system(("mkdir -p " + path.substr(0, path.rfind('/'))).c_str()) != 0) return 1;
        std::ofstream(path) << text;
    }
    std::string command = "g++ -std=c++17 -O1 -w -fPIC -shared -ffp-contract=off -fno-strict-aliasing -U_FORTIFY_SOURCE";
    for (int n = 0; n < count; ++n)
        if (strncmp(options[n], "-D", 2) == 0) command += std::string(" '") + options[n] + "'";
    command += " -include " + std::string(getenv("BILU_BENCH_EMULATOR")) + "/device.h -I" + at + " " + at +
               "/source.cpp -o " + at + "/code.so 2> " + at + "/log";
    const int failed = system(command.c_str());
    program->log = read_file(at + "/log");
    program->code = read_file(at + "/code.so");
    if (failed) fprintf(stderr, "%s\n", program->log.c_str());
    if (system(("rm -r " + at).c_str()) != 0) return 1;
    return failed ? 6 : 0;
}

Result nvrtcGetProgramLogSize(Program* program, size_t* size) { return *size = program->log.size() + 1, 0; }
Result nvrtcGetProgramLog(Program* program, char* log) { return strcpy(log, program->log.c_str()), 0; }
Result nvrtcGetCUBINSize(Program* program, size_t* size) { return *size = program->code.size(), 0; }
Result nvrtcGetCUBIN(Program* program, char* code) {
    return memcpy(code, program->code.data(), program->code.size()), 0;
}

Result cuInit(unsigned) { return 0; }
Result cuDriverGetVersion(int* version) { return *version = 13000, 0; }
Result cuGetErrorString(Result, const char** text) { return *text = "an error of the emulator", 0; }
Result cuGetErrorName(Result, const char** text) { return *text = "EMULATED", 0; }
Result cuDeviceGetCount(int* count) { return *count = 1, 0; }
Result cuDeviceGet(int* device, int) { return *device = 0, 0; }
Result cuDeviceGetName(char* name, int length, int) { return snprintf(name, length, "emulated GPU"), 0; }
Result cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 16: *value = 2; break;         // multiprocessors
        case 38: *value = 1 << 20; break;   // L2 cache
        case 75: *value = 9; break;         // compute capability
        case 97: *value = 232448; break;    // shared memory of a block
        default: *value = 0;
    }
    return 0;
}
Result cuDevicePrimaryCtxRetain(void** context, int) { return *context = (void*)1, 0; }
Result cuDevicePrimaryCtxRelease_v2(int) { return 0; }
Result cuCtxGetCurrent(void** context) { return *context = (void*)1, 0; }
Result cuCtxSetCurrent(void*) { return 0; }
Result cuCtxSynchronize() { return 0; }
Result cuStreamCreate(void** stream, unsigned) { return *stream = (void*)1, 0; }
Result cuStreamDestroy_v2(void*) { return 0; }
Result cuStreamSynchronize(void*) { return 0; }
Result cuEventCreate(void** event, unsigned) { return *event = (void*)1, 0; }
Result cuEventRecord(void*, void*) { return 0; }
Result cuEventSynchronize(void*) { return 0; }
Result cuEventDestroy_v2(void*) { return 0; }
Result cuEventElapsedTime_v2(float* ms, void*, void*) { return *ms = 1, 0; }

Result cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = (size_t)8 << 30, 0; }
Result cuMemAlloc_v2(uintptr_t* at, size_t bytes) {
    const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    char* all = (char*)mmap(nullptr, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 2;
    mprotect(all + pages, PAGE, PROT_NONE);
    memset(all, 0xcd, pages);
    *at = ((uintptr_t)all + pages - bytes) / 8 * 8;
    allocations[*at] = {all, pages + PAGE};
    return 0;
}
Result cuMemFree_v2(uintptr_t at) {
    const auto [all, bytes] = allocations[at];
    allocations.erase(at);
    return munmap(all, bytes);
}
Result cuMemHostAlloc(void** at, size_t bytes, unsigned) { return *at = malloc(bytes), 0; }
Result cuMemFreeHost(void* at) { return free(at), 0; }
Result cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void*) {
    return memcpy((void*)to, from, bytes), 0;
}
Result cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void*) {
    return memcpy(to, (const void*)from, bytes), 0;
}
Result cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void*) {
    return memcpy((void*)to, (const void*)from, bytes), 0;
}
Result cuMemsetD8Async(uintptr_t to, unsigned char byte, size_t bytes, void*) {
    return memset((void*)to, byte, bytes), 0;
}

Result cuModuleLoadData(void** module, const void* code) {
    const Elf64_Ehdr* head = (const Elf64_Ehdr*)code;
    const size_t bytes = head->e_shoff + (size_t)head->e_shentsize * head->e_shnum;
    const std::string at = folder(), path = at + "/code.so";
    std::ofstream(path, std::ios::binary).write((const char*)code, bytes).flush();
    *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "%s\n", dlerror());
    unlink(path.c_str());
    rmdir(at.c_str());
    return *module ? 0 : 200;
}
Result cuModuleUnload(void*) { return 0; }
Result cuModuleGetFunction(Function** function, void* module, const char* name) {
    const std::string call = std::string(name) + "__emulated";
    *function = new Function{(Kernel)dlsym(module, call.c_str()), (Launch)dlsym(module, "emulated_launch")};
    return (*function)->kernel && (*function)->launch ? 0 : 500;
}
Result cuFuncGetAttribute(int* value, int, void*) { return *value = 0, 0; }
Result cuFuncSetAttribute(void*, int, int) { return 0; }
Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int, size_t, unsigned) {
    return *blocks = 2, 0;
}
Result cuLaunchKernel(Function* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                      unsigned shared, void*, void** arguments, void**) {
    function->launch(function->kernel, grid, block, shared, arguments);
    return 0;
}
Result cuLaunchCooperativeKernel(Function* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                                 unsigned, unsigned shared, void*, void** arguments) {
    if (grid > 1) return 720;  // blocks run one after the other
    function->launch(function->kernel, grid, block, shared, arguments);
    return 0;
}
Result cuModuleGetGlobal_v2(uintptr_t* at, size_t* bytes, void* module, const char* name) {
    *at = (uintptr_t)dlsym(module, name);
    Dl_info info;
    const Elf64_Sym* symbol = nullptr;
    if (!*at || !dladdr1((void*)*at, &info, (void**)&symbol, RTLD_DL_SYMENT)) return 500;
    *bytes = symbol->st_size;
    return 0;
}

}  // extern "C"
