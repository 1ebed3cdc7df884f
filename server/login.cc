// From a client's first message to its first statement.

#include <algorithm>
#include <cctype>

#include "base/lower_case.h"
#include "base/version.h"
#include "server/connection.h"
#include "session/activity.h"
#include "session/engine.h"

namespace tessera::server {
namespace {

enum class Challenge : int32_t { kNone = 0, kScram = 10, kScramGoesOn = 11, kScramEnds = 12 };

void WriteChallenge(Challenge challenge, std::string_view data, MessageWriter* out) {
  out->Begin('R');
  out->Int32(static_cast<int32_t>(challenge));
  out->Bytes(data);
  out->End();
}

bool IsSettingName(std::string_view name) {
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

/// -c name=value --name=value: what PGOPTIONS has.
void ReadOptions(std::string_view text, std::vector<std::pair<std::string, std::string>>* settings) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') {
      words.emplace_back();
    } else {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      words.back() += text[i];
    }
  }
  for (std::string_view word : words) {
    if (word.starts_with("--")) word.remove_prefix(2);
    if (word.starts_with("-c")) word.remove_prefix(2);
    const size_t equals = word.find('=');
    if (equals != word.npos) settings->emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
}

class NoRows final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&&) override { return Status::Ok(); }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }
};

}  // namespace

bool Connection::Start(std::string_view body) {
  Result<StartupMessage> read = ReadStartup(body);
  if (!read.ok()) {
    Refuse(read.status().sqlstate(), read.status().message());
    return false;
  }
  std::vector<std::string> unknown;
  std::string encoding = "UTF8";
  for (auto& [name, value] : read->parameters) {
    const std::string lower = LowerCase(name);
    if (lower == "user") {
      user_ = value;
    } else if (lower == "client_encoding") {
      encoding = value;
    } else if (lower == "options") {
      ReadOptions(value, &asked_);
    } else if (lower.starts_with("_pq_.")) {
      unknown.push_back(name);
    } else if (lower != "database" && lower != "replication") {
      asked_.emplace_back(lower, value);
    }
  }
  std::string plain = LowerCase(encoding);
  std::erase_if(plain, [](unsigned char c) { return std::isalnum(c) == 0; });
  if (plain != "utf8" && plain != "unicode" && plain != "sqlascii" && plain != "auto") {
    Refuse("22023", "client_encoding \"" + encoding + "\" is not supported", "Texts are always UTF-8.");
    return false;
  }
  if (user_.empty()) {
    Refuse("28000", "no user name specified in startup packet");
    return false;
  }
  if (read->minor > 0 || !unknown.empty()) {
    out_.Begin('v');
    out_.Int32(0);
    out_.Int32(static_cast<int32_t>(unknown.size()));
    for (const std::string& name : unknown) out_.String(name);
    out_.End();
  }
  files_ = service_.options.files;
  role_ = service_.roles->Find(user_);
  if (origin_.is_local && !service_.options.authenticate_all) {
    if (!MayLogIn()) return false;
    TakeRights();
    Welcome();
    return true;
  }
  const Result<bool> has_passwords = service_.roles->HasPasswords();
  if (service_.options.roles_file.empty() && !(has_passwords.ok() && *has_passwords)) {
    Refuse("28000", "no role has a password: only processes of this machine may connect",
           "Start the server with --roles FILE, or enter CREATE ROLE name LOGIN PASSWORD '...'.");
    return false;
  }
  scram_ = std::make_unique<ScramExchange>(role_ && role_->has_password ? &*role_ : nullptr);
  WriteChallenge(Challenge::kScram, std::string_view("SCRAM-SHA-256\0\0", 15), &out_);
  state_ = State::kScramFirst;
  Flush();
  return true;
}

bool Connection::TakePassword(std::string_view body) {
  if (state_ == State::kScramFirst) {
    MessageReader reader(body);
    const std::string_view mechanism = reader.String();
    const int32_t size = reader.Int32();
    const std::string_view first = size < 0 ? std::string_view() : reader.Bytes(static_cast<size_t>(size));
    Result<std::string> answer = mechanism == "SCRAM-SHA-256" && reader.End().ok()
                                     ? scram_->First(first)
                                     : Result<std::string>(ProtocolError("client selected an invalid SASL mechanism"));
    if (!answer.ok()) {
      Refuse(answer.status().sqlstate(), answer.status().message());
      return false;
    }
    WriteChallenge(Challenge::kScramGoesOn, *answer, &out_);
    state_ = State::kScramFinal;
    Flush();
    return true;
  }
  Result<std::optional<std::string>> answer = scram_->Final(body);
  if (!answer.ok()) {
    Refuse(answer.status().sqlstate(), answer.status().message());
    return false;
  }
  if (!*answer) {
    Refuse("28P01", "password authentication failed for user \"" + user_ + "\"");
    return false;
  }
  scram_.reset();
  if (!MayLogIn()) return false;
  WriteChallenge(Challenge::kScramEnds, **answer, &out_);
  TakeRights();
  Welcome();
  return true;
}

void Connection::SendParameter(std::string_view name, std::string_view value) {
  out_.Begin('S');
  out_.String(name);
  out_.String(value);
  out_.End();
}

void Connection::Welcome() {
  WriteChallenge(Challenge::kNone, {}, &out_);
  const bool reads_only = reads_only_ || service_.session.mode == OpenMode::kReadOnly;
  for (const auto& [name, value] : asked_) {
    if (name == "application_name") application_ = value;
  }
  Appear();
  SendParameter("application_name", application_);
  SendParameter("client_encoding", "UTF8");
  SendParameter("DateStyle", "ISO, MDY");
  SendParameter("default_transaction_read_only", reads_only ? "on" : "off");
  SendParameter("in_hot_standby", "off");
  SendParameter("integer_datetimes", "on");
  SendParameter("IntervalStyle", "postgres");
  SendParameter("is_superuser", "on");
  SendParameter("server_encoding", "UTF8");
  SendParameter("server_version", std::string("15.0 (Tessera ") + kVersion + ")");
  SendParameter("session_authorization", user_);
  SendParameter("standard_conforming_strings", "on");
  SendParameter("TimeZone", zone_);
  out_.Begin('K');
  out_.Int32(process_);
  out_.Int32(key_);
  out_.End();
  state_ = State::kReady;
  SendReady();
}

bool Connection::MayLogIn() {
  if (!role_ || role_->logs_in) return true;
  Refuse("28000", "role \"" + user_ + "\" is not permitted to log in", "ALTER ROLE " + user_ + " LOGIN permits it.");
  return false;
}

void Connection::TakeRights() {
  if (!role_) return;
  reads_only_ = role_->reads_only;
  files_ |= role_->files;
}

void Connection::Appear() {
  SessionReport report;
  report.pid = process_;
  report.user = user_;
  report.application = application_;
  report.client = origin_.address;
  report.client_port = origin_.port;
  activity_ = std::make_shared<SessionActivity>(service_.session.engine->activity(), std::move(report),
                                                !reads_only_ && !(role_ && role_->is_of_catalog));
  activity_->Connect([this] { Cancel(); }, [this] { link_.Terminate(); });
}

Status Connection::OpenSession() {
  if (session_ != nullptr) return Status::Ok();
  SessionOptions options = service_.session;
  if (reads_only_) options.mode = OpenMode::kReadOnly;
  options.files = files_;
  options.files_folder = service_.options.files_folder;
  if (role_) options.rights = role_->tables;
  if (role_ && role_->is_of_catalog) options.role = user_;
  options.copy_client = this;
  options.activity = activity_;
  options.standard_input_is_free = false;
  TESSERA_ASSIGN(std::unique_ptr<Session> session, Session::Open(options));
  {
    const std::lock_guard lock(session_mutex_);
    session_ = std::move(session);
  }
  SetAsAsked();
  return Status::Ok();
}

void Connection::SetAsAsked() {
  NoRows none;
  for (const auto& [name, value] : asked_) {
    if (!IsSettingName(name)) continue;
    std::string quoted;
    for (const char c : value) quoted += c == '\'' ? std::string("''") : std::string(1, c);
    const Status status = session_->Execute("SET " + name + " = '" + quoted + "'", &none);
    if (!status.ok()) SendWarning(status.message());
  }
  if (!asked_.empty()) ReportSettings("SET");
}

}  // namespace tessera::server
