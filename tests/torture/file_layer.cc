// The C library's calls.
#include "tests/torture/file_layer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace tessera {
namespace {

std::atomic<FileLayer*> current{nullptr};
thread_local bool inside = false;

/// system(bytes) through the layer, if there is one.
template <class System>
long Through(FileCall call, const System& system) {
  FileLayer* const layer = inside ? nullptr : current.load(std::memory_order_acquire);
  if (layer == nullptr) return system(call.bytes.size());
  inside = true;
  const long result = layer->Call(call, system);
  inside = false;
  return result;
}

FileCall Named(FileCallKind kind, const char* path) {
  FileCall call{kind};
  call.path = path;
  return call;
}

FileCall Opened(FileCallKind kind, int fd) {
  FileCall call{kind};
  call.fd = fd;
  return call;
}

int Open(const char* path, int flags, mode_t mode) {
  FileCall call = Named(FileCallKind::kOpen, path);
  call.flags = flags;
  return static_cast<int>(Through(call, [&](size_t) { return syscall(SYS_openat, AT_FDCWD, path, flags, mode); }));
}

ssize_t WriteAt(int fd, const void* bytes, size_t size, off_t offset) {
  FileCall call = Opened(FileCallKind::kWrite, fd);
  call.offset = offset;
  call.bytes = {static_cast<const char*>(bytes), size};
  return Through(call, [&](size_t n) { return syscall(SYS_pwrite64, fd, bytes, n, offset); });
}

int Truncate(int fd, off_t size) {
  FileCall call = Opened(FileCallKind::kTruncate, fd);
  call.offset = size;
  return static_cast<int>(Through(call, [&](size_t) { return syscall(SYS_ftruncate, fd, size); }));
}

void* Map(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  const auto system = [&](size_t) { return syscall(SYS_mmap, address, size, protection, flags, fd, offset); };
  // Memory without a file is the business of other campaigns.
  const long mapped = fd < 0 ? system(0) : Through(Opened(FileCallKind::kMap, fd), system);
  return mapped == -1 ? MAP_FAILED : reinterpret_cast<void*>(mapped);
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

const char* NameOf(FileCallKind kind) {
  constexpr const char* kNames[kFileCallKinds] = {"open",  "write",    "sync", "rename", "unlink",
                                                  "mkdir", "truncate", "map",  "thread"};
  return kNames[static_cast<int>(kind)];
}

void SetFileLayer(FileLayer* layer) { current.store(layer, std::memory_order_release); }

}  // namespace tessera

using namespace tessera;  // NOLINT: what follows is the C library's

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  FileCall call = Opened(FileCallKind::kWrite, fd);
  call.offset = static_cast<off_t>(syscall(SYS_lseek, fd, 0, SEEK_CUR));
  call.bytes = {static_cast<const char*>(bytes), size};
  return Through(call, [&](size_t n) { return syscall(SYS_write, fd, bytes, n); });
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) { return WriteAt(fd, bytes, size, offset); }
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) { return WriteAt(fd, bytes, size, offset); }
ssize_t writev(int fd, const iovec* parts, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return write(fd, bytes.data(), bytes.size());
}

int fsync(int fd) {
  return static_cast<int>(Through(Opened(FileCallKind::kSync, fd), [&](size_t) { return syscall(SYS_fsync, fd); }));
}
int fdatasync(int fd) {
  return static_cast<int>(Through(Opened(FileCallKind::kSync, fd), [&](size_t) { return syscall(SYS_fdatasync, fd); }));
}

int rename(const char* from, const char* to) noexcept {
  FileCall call = Named(FileCallKind::kRename, from);
  call.to = to;
  return static_cast<int>(Through(call, [&](size_t) { return syscall(SYS_rename, from, to); }));
}
int unlink(const char* path) noexcept {
  return static_cast<int>(
      Through(Named(FileCallKind::kUnlink, path), [&](size_t) { return syscall(SYS_unlink, path); }));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(
      Through(Named(FileCallKind::kMakeDirectory, path), [&](size_t) { return syscall(SYS_mkdir, path, mode); }));
}

int ftruncate(int fd, off_t size) noexcept { return Truncate(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept { return Truncate(fd, size); }

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  return Map(address, size, protection, flags, fd, offset);
}
void* mmap64(void* address, size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  return Map(address, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return static_cast<int>(
      Through(FileCall{FileCallKind::kThread}, [&](size_t) { return create(thread, attributes, run, argument); }));
}

}  // extern "C"
