#include "kernels/ranks/nccl.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

namespace tessera::kernels {
namespace {

/// Where Python keeps libraries that came as packages: of a virtual environment or the Python in PATH, of the user, of
/// the system.
std::vector<std::string> PythonLibraries() {
  std::vector<std::string> roots;
  const auto add = [&](const char* variable, const char* below) {
    if (const char* value = getenv(variable); value != nullptr) roots.push_back(std::string(value) + below);
  };
  add("VIRTUAL_ENV", "/lib");
  std::string_view path = getenv("PATH") != nullptr ? getenv("PATH") : "";
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    if (const std::string folder(path.substr(0, end)); folder.ends_with("/bin"))
      roots.push_back(folder.substr(0, folder.size() - 4) + "/lib");
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  add("HOME", "/.local/lib");
  std::vector<std::string> found;
  for (const std::string& root : roots) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const std::string pattern = root + "/python3*/" + packages + "/nvidia/nccl/lib/libnccl.so.2";
      glob_t files;
      if (glob(pattern.c_str(), 0, nullptr, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc; ++i) found.emplace_back(files.gl_pathv[i]);
      }
      globfree(&files);
    }
  }
  return found;
}

void* OpenLibrary(std::string* why_not) {
  const char* const said = getenv("TESSERA_NCCL");
  if (said != nullptr && std::string_view(said) == "off") {
    *why_not = "TESSERA_NCCL is off";
    return nullptr;
  }
  std::vector<std::string> names;
  if (said != nullptr && *said != 0) {
    names.emplace_back(said);
  } else {
    names = PythonLibraries();
    names.insert(names.begin(), "libnccl.so.2");
  }
  for (const std::string& name : names) {
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    const char* const error = dlerror();
    if (why_not->empty()) *why_not = error != nullptr ? error : name + " cannot be loaded";
  }
  return nullptr;
}

template <class F>
bool Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

const Nccl* LoadNccl(std::string* why_not) {
  static std::mutex mutex;
  static Nccl nccl;
  static std::string why;
  static bool tried = false, there = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!tried) {
    tried = true;
    // A program that multicasts over NVLink and ends badly can put the GPUs of a host out of service.
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    void* const library = OpenLibrary(&why);
#define TESSERA_FIND(name) Find(library, #name, &nccl.name)
    there = library != nullptr && TESSERA_FIND(ncclGetVersion) && TESSERA_FIND(ncclGetUniqueId) &&
            TESSERA_FIND(ncclCommInitRank) && TESSERA_FIND(ncclCommAbort) && TESSERA_FIND(ncclCommGetAsyncError) &&
            TESSERA_FIND(ncclGroupStart) && TESSERA_FIND(ncclGroupEnd) && TESSERA_FIND(ncclSend) &&
            TESSERA_FIND(ncclRecv) && TESSERA_FIND(ncclGetErrorString);
#undef TESSERA_FIND
    if (library != nullptr && !there) why = "the NCCL found is older than version 2.7";
  }
  *why_not = why;
  return there ? &nccl : nullptr;
}

}  // namespace tessera::kernels
