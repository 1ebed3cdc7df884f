// How much memory columns and runs may take of a device, how much they have, and the pool that it comes from. Private to
// kernels/memory/.
//
// Start at: DeviceBudget::Fits, Claim. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/status.h"
#include "kernels/memory/spare_memory.h"

namespace tessera::kernels {

class DeviceBudget {
 public:
  DeviceBudget() = default;
  /// REQUIRES: nothing uses memory of the pool.
  ~DeviceBudget();
  DeviceBudget(const DeviceBudget&) = delete;
  DeviceBudget& operator=(const DeviceBudget&) = delete;

  Status Open(uint64_t bytes, int device);
  cudaMemPool_t pool() const { return pool_; }

  uint64_t bytes() const { return bytes_; }
  uint64_t columns() const { return columns_; }
  /// What runs have, and what only they can take, because it lies beside that.
  uint64_t claimed() const { return claimed_ + spare_.held_bytes(); }
  /// By columns and runs.
  uint64_t taken() const { return columns_ + claimed_; }
  /// Whether `bytes` fit beside all that is there.
  bool Fits(uint64_t bytes) const { return taken() + spare_.bytes() + bytes <= bytes_; }

  void AddColumn(uint64_t bytes) { columns_ += bytes; }
  void DropColumn(uint64_t bytes) { columns_ -= bytes; }
  void Claim(uint64_t bytes) { claimed_ += bytes; }
  /// If no column has to make room. false: it does not fit so.
  bool ClaimFree(uint64_t bytes);
  void Release(uint64_t bytes) { claimed_ -= bytes; }

  /// As those of ColumnCache.
  void* TakeSpare(uint64_t bytes);
  void PutSpare(void* data, uint64_t bytes, cudaStream_t stream);
  void FreeSpare() { spare_.Free(UINT64_MAX); }
  /// Whether there is spare memory that can be given back.
  bool has_free_spare() const { return spare_.bytes() > spare_.held_bytes(); }
  /// Gives it back, and waits until nothing uses it.
  cudaError_t FreeSpareAndWait() { return spare_.FreeAndWait(); }
  /// Gives spare memory back where columns, what is claimed and `bytes` more leave it no room.
  void MakeSpareRoom(uint64_t bytes);

  /// CUDA had no memory although the budget had room: what there is now becomes the budget.
  void LiveWithLess() { bytes_ = taken() + spare_.bytes(); }
  /// The same where a column needs `bytes`: what is claimed stays, and half of the columns or that one.
  void LiveWithFewerColumns(uint64_t bytes);
  /// The budget that Open gave.
  void Renew() { bytes_ = whole_; }

 private:
  uint64_t whole_ = 0, bytes_ = 0;  ///< as Open gave it; as it is now
  uint64_t columns_ = 0, claimed_ = 0;
  cudaMemPool_t pool_ = nullptr;
  SpareMemory spare_;  ///< empty when the pool goes: of GpuDevice's stream, which empties it
};

}  // namespace tessera::kernels
