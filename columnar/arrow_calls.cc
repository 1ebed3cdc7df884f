#include "columnar/arrow_calls.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <new>

#include "base/exception_status.h"

namespace tessera::columnar {
namespace {

/// More than this at a time is no size of a file's own, but what a broken one says.
constexpr int64_t kMostBytes = int64_t{1} << 40;

class Pool final : public arrow::MemoryPool {
 public:
  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;

  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    if (size < 0 || size > kMostBytes) return TooMuch(size);
    try {
      *out = static_cast<uint8_t*>(
          ::operator new(static_cast<size_t>(size > 0 ? size : 1), std::align_val_t(static_cast<size_t>(alignment))));
    } catch (const std::bad_alloc&) {
      return TooMuch(size);
    }
    stats_.DidAllocateBytes(size);
    return arrow::Status::OK();
  }

  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** bytes) override {
    uint8_t* larger = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &larger));
    memcpy(larger, *bytes, static_cast<size_t>(old_size < new_size ? old_size : new_size));
    Free(*bytes, old_size, alignment);
    *bytes = larger;
    return arrow::Status::OK();
  }

  void Free(uint8_t* bytes, int64_t size, int64_t alignment) override {
    ::operator delete(bytes, std::align_val_t(static_cast<size_t>(alignment)));
    stats_.DidFreeBytes(size);
  }

  int64_t bytes_allocated() const override { return stats_.bytes_allocated(); }
  int64_t max_memory() const override { return stats_.max_memory(); }
  int64_t total_bytes_allocated() const override { return stats_.total_bytes_allocated(); }
  int64_t num_allocations() const override { return stats_.num_allocations(); }
  std::string backend_name() const override { return "tessera"; }

 private:
  static arrow::Status TooMuch(int64_t size) {
    return arrow::Status::OutOfMemory("there is no memory for ", size, " bytes");
  }
  arrow::internal::MemoryPoolStats stats_;
};

/// One line, without what Arrow adds of its source.
std::string OneLine(std::string text) {
  if (const size_t end = text.find_first_of("\r\n"); end != std::string::npos) text.resize(end);
  if (text.size() > 300) text.resize(300);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  return text;
}

Status Made(ErrorKind kind, const std::string& what, const std::string& name, const std::string& place) {
  const std::string where = "\"" + name + "\"" + (place.empty() ? "" : ", " + place);
  const bool out_of_memory = kind == ErrorKind::kOutOfMemory;
  return {kind, where + ": " + OneLine(what),
          out_of_memory ? "SET memory_limit, or the file says sizes that are not its own." : ""};
}

}  // namespace

arrow::MemoryPool* BudgetPool() {
  static Pool pool;
  return &pool;
}

Status Error(const arrow::Status& status, const std::string& name, const std::string& place) {
  if (status.IsOutOfMemory()) return Made(ErrorKind::kOutOfMemory, status.message(), name, place);
  if (status.IsNotImplemented()) return Made(ErrorKind::kFeatureNotSupported, status.message(), name, place);
  return Made(status.IsIOError() ? ErrorKind::kIo : ErrorKind::kBadCopyFormat, status.message(), name, place);
}

Status ErrorOfException(const std::string& name, const std::string& place) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Made(ErrorKind::kOutOfMemory, "out of memory", name, place);
  } catch (const std::exception& error) {
    return Made(ErrorKind::kBadCopyFormat, error.what(), name, place);
  } catch (...) {
    return Made(ErrorKind::kBadCopyFormat, "the file cannot be read", name, place);
  }
}

}  // namespace tessera::columnar
