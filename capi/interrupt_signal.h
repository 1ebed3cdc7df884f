// SIGINT while a statement runs: it is cancelled, and the handler that the program has is called, too.
//
// Start at: InterruptSignal. The first thread of the process; one at a time.
#pragma once

#include <signal.h>

namespace tessera {

class Session;

class InterruptSignal {
 public:
  /// Does nothing in another thread than the first, and where SIGINT is ignored. The session lives longer.
  explicit InterruptSignal(Session* session);
  ~InterruptSignal();
  InterruptSignal(const InterruptSignal&) = delete;
  InterruptSignal& operator=(const InterruptSignal&) = delete;

 private:
  bool installed_ = false;
};

}  // namespace tessera
