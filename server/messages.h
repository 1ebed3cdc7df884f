// The messages of PostgreSQL's protocol 3.0 as bytes: what a client sends is read here, and what it gets is written here.
// https://www.postgresql.org/docs/15/protocol-message-formats.html has the layouts.
//
// Start at: TakeFrame, MessageReader, MessageWriter. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tessera::server {

/// Bytes of a message before the client has logged in, and after.
inline constexpr size_t kMostBeforeLogin = 10'000, kMostBytes = (size_t{1} << 30) - 1;

/// A message without its length.
struct Message {
  char type = 0;  ///< 0: one of the first messages, which have none
  std::string body;
};

/// Where the first message of `bytes` ends; 0: there is more of it to come. `is_first`: it has no type. Errors: its length is
/// none, or more than `most`.
Result<size_t> FrameEnd(std::string_view bytes, bool is_first, size_t most);
/// The message in these bytes. REQUIRES: FrameEnd(bytes) == bytes.size()
Message TakeFrame(std::string_view bytes, bool is_first);

/// The error for bytes that are no message.
Status ProtocolError(std::string message);

/// Reads the fields of a message. After an error all fields are empty, and End() tells it.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t Byte() { return static_cast<uint8_t>(Number(1)); }
  int16_t Int16() { return static_cast<int16_t>(Number(2)); }
  int32_t Int32() { return static_cast<int32_t>(Number(4)); }
  int64_t Int64() { return static_cast<int64_t>(Number(8)); }
  /// Up to a NUL byte, which is left out.
  std::string_view String();
  std::string_view Bytes(size_t size);
  /// The bytes that are left.
  std::string_view Rest() { return Bytes(rest_.size()); }
  bool AtEnd() const { return rest_.empty(); }
  /// Whether a field was not there.
  bool failed() const { return failed_; }
  /// Errors: a field was not there; something is left.
  Status End() const;

 private:
  uint64_t Number(size_t bytes);
  bool failed_ = false;
  std::string_view rest_;
};

/// The first message, which says what the connection is for.
struct StartupMessage {
  enum class Kind : uint8_t { kSession, kTls, kGssEncryption, kCancel };
  Kind kind = Kind::kSession;
  int minor = 0;                                                ///< of the version 3.minor
  std::vector<std::pair<std::string, std::string>> parameters;  ///< kSession
  int32_t process = 0, key = 0;                                 ///< kCancel
};
Result<StartupMessage> ReadStartup(std::string_view body);

struct ParseMessage {
  std::string name, sql;
  std::vector<int32_t> types;  ///< OIDs of the first parameters; 0: not said
};
Result<ParseMessage> ReadParse(std::string_view body);

struct BindMessage {
  std::string portal, statement;
  std::vector<std::optional<std::string>> values;  ///< nullopt: NULL
  std::vector<int16_t> formats, result_formats;    ///< 1: binary; none: all are texts; one: it is that of all
};
Result<BindMessage> ReadBind(std::string_view body);

/// Describe and Close.
struct NameMessage {
  bool is_portal = false;  ///< else a prepared statement
  std::string name;
};
Result<NameMessage> ReadName(std::string_view body);

struct ExecuteMessage {
  std::string portal;
  int32_t most_rows = 0;  ///< 0: all
};
Result<ExecuteMessage> ReadExecute(std::string_view body);

/// The format of column or parameter `i`.
bool IsBinary(const std::vector<int16_t>& formats, size_t i);
/// Errors: formats for another number of things, or one that is none.
Status CheckFormats(const std::vector<int16_t>& formats, size_t things);

/// Appends messages to bytes that are to be sent.
class MessageWriter {
 public:
  void Begin(char type);
  void Byte(char c) { bytes_ += c; }
  void Int16(int16_t v) { Number(static_cast<uint64_t>(v), 2); }
  void Int32(int32_t v) { Number(static_cast<uint64_t>(v), 4); }
  void Int64(int64_t v) { Number(static_cast<uint64_t>(v), 8); }
  /// The bytes up to a NUL, and one.
  void String(std::string_view text);
  void Bytes(std::string_view bytes) { bytes_ += bytes; }
  void End();

  /// A field that begins with its length, written in between.
  size_t BeginField();
  void EndField(size_t field);
  std::string* buffer() { return &bytes_; }

  size_t size() const { return bytes_.size(); }
  /// What was written, which is forgotten.
  std::string Take() { return std::exchange(bytes_, {}); }

 private:
  void Number(uint64_t v, int bytes);
  void PutLength(size_t at);
  std::string bytes_;
  size_t begin_ = 0;
};

/// An error or a notice, as a client is told it.
struct Report {
  const char* severity = "ERROR";  ///< FATAL: the connection ends
  std::string sqlstate;
  std::string message, hint;
  int position = 0;  ///< in characters, from 1; 0: none
};
void WriteReport(const Report& report, MessageWriter* out);
/// Of a statement that begins at byte `offset` of `text`.
Report ReportOf(const Status& error, std::string_view text, size_t offset);

}  // namespace tessera::server
