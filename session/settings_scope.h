// What a statement changes of the session's settings, and changes back when it ends. Internal to session/.
//
// Start at: SettingsScope. The thread of the session.
#pragma once

#include "session/session_state.h"
#include "session/settings.h"

namespace tessera {

class SettingsScope {
 public:
  explicit SettingsScope(SessionState* state) : state_(*state), saved_(state->settings) {}
  ~SettingsScope() {
    state_.settings = saved_;
    state_.database->SetCompression(saved_.compression);
  }
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;

 private:
  SessionState& state_;
  const Settings saved_;
};

}  // namespace tessera
