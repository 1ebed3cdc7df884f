// Finding and loading the shared object that has Arrow in it.
#include "tablet/columnar/columnar_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "base/version.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

constexpr char kHowToGetIt[] =
    "Say make arrow: it installs the Python package pyarrow into build/venv, which has the library, and builds "
    "tessera_arrow.so for it. Keep that file beside tessera.";

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// Beside the program, or beside the library that has this code.
std::string PluginPath() {
  std::string program(4096, 0);
  const ssize_t n = readlink("/proc/self/exe", program.data(), program.size());
  program.resize(n > 0 ? static_cast<size_t>(n) : 0);
  const std::string beside = FolderOf(program) + "tessera_arrow.so";
  Dl_info info{};
  if (access(beside.c_str(), R_OK) != 0 && dladdr(kHowToGetIt, &info) != 0 && info.dli_fname != nullptr) {
    const std::string other = FolderOf(info.dli_fname) + "tessera_arrow.so";
    if (access(other.c_str(), R_OK) == 0) return other;
  }
  return beside;
}

/// nullptr: `why` says why not.
ColumnarPlugin* Load(std::string* why) {
  const std::string path = PluginPath();
  if (access(path.c_str(), R_OK) != 0) {
    *why = "there is no " + path;
    return nullptr;
  }
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = object == nullptr ? nullptr : dlsym(object, kColumnarEntry);
  if (symbol == nullptr) {
    const char* const reason = dlerror();
    *why = reason != nullptr ? reason : path + " is another library";
    return nullptr;
  }
  const auto* const entry = static_cast<const ColumnarEntry*>(symbol);
  if (std::string_view(entry->version) != kVersion || entry->layout != kColumnarLayout) {
    *why = path + " belongs to another build of Tessera";
    return nullptr;
  }
  return entry->plugin;
}

}  // namespace

Result<ColumnarPlugin*> LoadColumnarPlugin(const std::string& name) {
  static std::mutex mutex;
  static ColumnarPlugin* loaded = nullptr;
  const std::lock_guard lock(mutex);
  std::string why;
  // (What was missing may have been built since.)
  if (loaded == nullptr) loaded = Load(&why);
  if (loaded != nullptr) return loaded;
  return Status(ErrorCode::kUnsupported, QuoteForMessage(name) + " needs Apache Arrow: " + why, kHowToGetIt);
}

}  // namespace tessera
