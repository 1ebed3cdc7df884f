// The name of this machine, as `hostname` gives it.
#pragma once

#include <unistd.h>

#include <string>

namespace tessera {

inline std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace tessera
