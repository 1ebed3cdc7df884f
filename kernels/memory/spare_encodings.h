// Encodings of tablets that are done with: to make room for others takes as long as to fill it. Private to kernels/. No
// CUDA here.
//
// Start at: SpareEncodings::Take. One thread at a time.
#pragma once

#include <vector>

#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

class SpareEncodings {
 public:
  /// Room for those that will be kept. REQUIRES: before Keep, which otherwise keeps none.
  void Reserve();
  /// One without contents, which may have room.
  vm::TabletEncoding Take();
  /// Allocates nothing: destructors call this.
  void Keep(vm::TabletEncoding encoding);
  /// Leaves `encodings` empty.
  void KeepAll(std::vector<vm::TabletEncoding>* encodings);

 private:
  std::vector<vm::TabletEncoding> spare_;
};

}  // namespace tessera::kernels
