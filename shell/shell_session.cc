// The session of this process as one of a shell.
#include "shell/shell_session.h"

#include <utility>

namespace tessera {
namespace {

class LocalSession final : public ShellSession {
 public:
  explicit LocalSession(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Status Execute(std::string_view sql, ResultWriter* out) override { return session_->Execute(sql, out); }
  void Cancel() override { session_->Cancel(); }
  void SetCopyClient(CopyClient* client) override { session_->SetCopyClient(client); }
  void SetProgress(std::function<void(const Progress&)> progress) override {
    session_->SetProgress(std::move(progress));
  }
  Session::TransactionState transaction() const override { return session_->transaction(); }
  const Timing& last_timing() const override { return session_->last_timing(); }
  bool last_was_query() const override { return session_->last_was_query(); }
  std::string TakeWarning() override { return session_->TakeWarning(); }
  std::string Description() const override { return session_->DeviceDescription(); }
  Session* local() override { return session_.get(); }

 private:
  const std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<ShellSession> MakeLocalSession(std::unique_ptr<Session> session) {
  return std::make_unique<LocalSession>(std::move(session));
}

}  // namespace tessera
