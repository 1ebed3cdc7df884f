#include "base/user_name.h"

#include <pwd.h>
#include <unistd.h>

#include <array>

namespace tessera {

std::string UserOfProcess() {
  std::array<char, 4096> room;
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, room.data(), room.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(geteuid());
}

}  // namespace tessera
