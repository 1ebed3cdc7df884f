// One client's connection: what its messages mean, and what they are answered. The protocol is PostgreSQL's 3.0; README.md has
// what of it there is.
//
// A connection has a session from its first statement on. Its messages come one at a time, on any thread.
//
// Start at: Connection::Take.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/authentication.h"
#include "server/copy_binary.h"
#include "server/link.h"
#include "server/messages.h"
#include "server/metrics.h"
#include "server/row_sender.h"
#include "server/server_options.h"
#include "server/slow_log.h"
#include "session/copy_client.h"
#include "session/session.h"

namespace tessera::server {

/// What all connections have.
struct Service {
  SessionOptions session;  ///< with an engine
  ServerOptions options;
  CurrentRoles* roles = nullptr;
  Metrics* metrics = nullptr;
  SlowLog* slow_log = nullptr;  ///< nullptr: there is none
  /// Folders of the server, which errors do not name to clients that may touch no files.
  std::vector<std::string> hidden;
};

class Connection final : private CopyClient {
 public:
  /// `origin`: where the client is. `process`, `key`: what it is told, to cancel its statements.
  Connection(const Service& service, Link* link, Origin origin, int32_t process, int32_t key);
  ~Connection() override;

  /// Answers a message. False: the connection is to end, when what was sent has gone.
  bool Take(Message&& message);
  /// A fatal error, after which the connection is to end.
  void Refuse(const char* sqlstate, const std::string& message, const std::string& hint = {});
  /// Rolls back what is open. No message comes after it.
  void EndSession();
  /// Ends the statement that runs. Any thread.
  void Cancel();
  /// Milliseconds that it may wait for the next message now; 0: any time.
  int64_t idle_timeout() const;
  /// Any thread.
  bool has_logged_in() const { return state_ == State::kReady; }

 private:
  enum class State : uint8_t { kStart, kScramFirst, kScramFinal, kReady };

  struct Prepared {
    std::string sql;  ///< one statement, or ""
    std::vector<int32_t> types;
    std::optional<StatementDescription> description;
  };
  struct Portal {
    std::string sql;
    std::vector<Value> values;
    std::vector<int16_t> formats;
    std::shared_ptr<Prepared> statement;
    std::unique_ptr<KeptResult> kept;  ///< of a statement whose rows are taken a few at a time; nullptr: it has not run
  };

  // Login: login.cc
  bool Start(std::string_view body);
  bool TakePassword(std::string_view body);
  void Welcome();
  void SendParameter(std::string_view name, std::string_view value);
  /// Makes the session, if there is none yet.
  Status OpenSession();
  void SetAsAsked();
  /// From here on others see it in tessera_sessions().
  void Appear();
  /// What the role may do, if there is one.
  void TakeRights();
  /// False: the role is refused.
  bool MayLogIn();

  // connection.cc
  bool TakeReady(const Message& message);
  bool Answer(const Message& message);
  void SimpleQuery(std::string_view body);
  /// Runs one statement and sends all that it answers. Errors: its own.
  /// `part_of_text`: others of its text come before or after it, which are one transaction with it.
  enum class Part : uint8_t { kAll, kSome, kLast };
  Status RunStatement(std::string_view sql, const std::vector<Value>* values, Part part, RowSender* sender);
  /// The same, without what is told of it elsewhere.
  Status RunUncounted(std::string_view sql, const std::vector<Value>* values, Part part, RowSender* sender);
  void SendWarning(const std::string& warning);
  /// Of settings that the statement may have changed.
  void ReportSettings(std::string_view sql);
  /// Without paths of the server.
  std::string Shown(std::string text) const;
  void SendReport(const Status& error, std::string_view text = {}, size_t offset = 0);
  void SendReady();

  // extended_query.cc
  Status Parse(std::string_view body);
  Status Bind(std::string_view body);
  Status Describe(std::string_view body);
  Status Execute(std::string_view body);
  Status Close(std::string_view body);
  Result<const StatementDescription*> DescriptionOf(Prepared* statement);
  Status SendRowDescription(Prepared* statement, const std::vector<int16_t>& formats);
  Status TakeExtended(char type, std::string_view body);

  // CopyClient
  Status BeginRead(size_t columns) override;
  Result<bool> Read(std::string* bytes) override;
  Status BeginWrite(size_t columns) override;
  Status Write(std::string&& rows) override;
  Status EndWrite() override;
  Status BeginReadBinary(const std::vector<SqlType>& types) override;
  Status BeginWriteBinary(size_t columns) override;
  Status WriteBinary(const RowBatch& batch) override;
  Status EndWriteBinary() override;
  Status SendCopyResponse(char type, size_t columns, bool binary = false);

  Status Send();
  void Flush();

  const Service& service_;
  Link& link_;
  const Origin origin_;
  const int32_t process_, key_;
  std::atomic<State> state_{State::kStart};
  std::string user_, application_;
  std::optional<Role> role_;                                ///< as it was when the client came
  std::vector<std::pair<std::string, std::string>> asked_;  ///< settings
  std::unique_ptr<ScramExchange> scram_;
  bool reads_only_ = false, files_ = false;
  MessageWriter out_;
  bool failed_ = false;  ///< all messages up to the next Sync are ignored
  std::string zone_ = "UTC";
  std::map<std::string, std::shared_ptr<Prepared>, std::less<>> statements_;
  std::map<std::string, Portal, std::less<>> portals_;
  std::unique_ptr<BinaryCopyReader> copy_reader_;  ///< of a COPY FROM in binary format; else nullptr
  bool copy_begun_ = false;                        ///< rows of one TO have been sent
  std::shared_ptr<SessionActivity> activity_;      ///< nullptr before the login
  /// Whether a message is being answered, and whether that is to end before its statement has begun.
  std::atomic<bool> works_{false}, cancelled_{false};
  std::mutex session_mutex_;          ///< for Cancel()
  std::unique_ptr<Session> session_;  ///< nullptr before the first statement
};

}  // namespace tessera::server
