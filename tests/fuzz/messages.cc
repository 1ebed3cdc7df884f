// Messages between ranks, of any bytes. The first byte says which kind of message: tests/mpi/message_feeds.h.
#include <cstddef>
#include <cstdint>

#include "tests/mpi/message_feeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)tessera::test::Feed({reinterpret_cast<const char*>(data), size});
  return 0;
}
