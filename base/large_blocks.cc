// This file replaces the global operator new of every program that is linked with Tessera's library, tests and
// generators included. operator delete stays the C++ library's: it frees what malloc and aligned_alloc return.
//
// Blocks of 4 MiB and more come in huge pages if the system leaves that to the program (transparent_hugepage = madvise,
// the usual setting). Group tables, join indexes and rows of many megabytes are written once and then read at random
// places: 6 M groups of two keys on two threads took 1,210 ms with pages of 4 KiB (two fifths of it in page faults),
// and take 500 ms with huge pages.
//
// Smaller blocks stay with the process when they are freed. Otherwise each section would get its interpreter state of
// 200 KB from the system: a query such as SSB q2.1 would have 29 page faults instead of 5.
//
// With a sanitizer its own operator new stays, because it finds more.

#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Smaller blocks would hardly fill a huge page, and take much more memory than was asked for.
constexpr std::size_t kLarge = 2 * kHugePage;

/// How many unused bytes may stay at the end of the heap.
constexpr int kKept = 64 << 20;
[[maybe_unused]] const bool kept =
    mallopt(M_MMAP_THRESHOLD, static_cast<int>(kLarge)) == 1 && mallopt(M_TRIM_THRESHOLD, kKept) == 1;

void* Allocate(std::size_t bytes) {
  if (bytes < kLarge) return std::malloc(bytes == 0 ? 1 : bytes);
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  void* block = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  if (block != nullptr) (void)madvise(block, bytes, MADV_HUGEPAGE);  // only advice: small pages work, too
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* block = Allocate(bytes); block != nullptr) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

#endif
