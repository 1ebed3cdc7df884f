// The GPU as a backend of the virtual machine. The public header of kernels/; plain C++, no CUDA in it. README.md
// beside this file describes the machine on the GPU.
//
// Where Tessera was built without CUDA, GpuCount() is 0 and Open fails with kUnsupported.
//
// Start at: Gpu::Open. A Gpu may be used from any thread; sections run one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/cache_report.h"
#include "vm/run/device.h"

namespace tessera {

struct GpuOptions {
  /// For cached columns, hash tables and output together, not counting the CUDA context; 0: nine tenths of what is free
  /// when the GPU is first used.
  uint64_t memory_bytes = 0;
  // For tests that have few rows:
  /// Join tables of up to this many rows are made without being waited for.
  uint64_t deferred_build_rows = uint64_t{1} << 26;
  /// Where it is not known how many rows come, there is room for this many at first, but at least 512.
  uint64_t first_build_rows = uint64_t{1} << 20;
  /// Memory that was taken for others and not filled is given back if it is so much.
  uint64_t given_back_bytes = uint64_t{64} << 20;
};

/// SET transfer: how columns come to a GPU.
enum class Transfer : uint8_t {
  kStream,    ///< through pinned memory that threads fill, beside kernels
  kSync,      ///< through pinned memory, piece by piece: each arrives before the next one is copied, and no kernel runs
  kZeroCopy,  ///< they stay in pinned memory, and kernels read it over the link; packed ones are copied as by kStream
  kPageable,  ///< from memory that is not pinned, which CUDA copies by way of its own
};
/// Bytes of a piece: 4 MiB is where a pinned copy reaches 96 % of the link's rate.
inline constexpr uint64_t kTransferPiece = uint64_t{4} << 20, kLeastTransferPiece = uint64_t{64} << 10,
                          kGreatestTransferPiece = uint64_t{64} << 20;

/// What MeasureTransfer moves.
struct TransferCase {
  Transfer transfer = Transfer::kStream;
  uint64_t piece_bytes = kTransferPiece, bytes = 0;
  bool scanned = false;  ///< a kernel reads each piece; kZeroCopy: always
};

struct GpuInfo {
  std::string name;           ///< "NVIDIA H100 80GB HBM3"
  uint64_t memory_bytes = 0;  ///< of the device
  int multiprocessors = 0;
  int major = 0, minor = 0;  ///< compute capability
};

/// What a Gpu holds now.
struct GpuMemory {
  uint64_t cached_bytes = 0;  ///< columns
  uint64_t budget_bytes = 0;  ///< 0 until the GPU is first used
};

/// CUDA devices of this machine; 0 without a driver.
int GpuCount();

/// Bytes of memory of the first device, in use or not; 0: there is none. No CUDA context is made.
uint64_t GpuMemoryBytes();

class Gpu : public vm::SectionBackend {
 public:
  /// `device_ordinal`: 0 .. GpuCount() - 1. No CUDA context is made before the first section runs. Errors: kUnsupported
  /// (no such device, too old a device, built without CUDA), kDevice.
  static Result<std::unique_ptr<Gpu>> Open(int device_ordinal, const GpuOptions& options);

  virtual const GpuInfo& info() const = 0;
  virtual GpuMemory memory() const = 0;
  /// What the cache of columns holds, and what it has done.
  virtual CacheReport Cache() const = 0;
  /// Forgets all cached columns.
  virtual Status DropCache() = 0;
  /// How columns come here from now on, in pieces of up to `piece_bytes` (0: kTransferPiece). A change forgets the cached
  /// ones, so that what is measured next is what was asked for.
  virtual Status SetTransfer(Transfer transfer, uint64_t piece_bytes) = 0;
  /// Bytes per second of a large copy within the device, counting those read and those written: what a scan is measured
  /// against. Measured the first time.
  virtual Result<double> MeasureBandwidth() = 0;
  /// Bytes per second in which memory of the host comes here; the least time of some rounds.
  virtual Result<double> MeasureTransfer(const TransferCase& way) = 0;
  /// Milliseconds that kernels take to unpack the packed codes of a chunk, when many chunks are unpacked one after the
  /// other, and what they made. `bytes`: of these chunks, packed and unpacked; 128 chunks are enough. REQUIRES: the codes are
  /// packed, and verified.
  virtual Result<double> MeasureUnpack(const Chunk& chunk, uint64_t bytes, std::vector<uint8_t>* codes) = 0;
};

}  // namespace tessera
