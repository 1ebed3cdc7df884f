#include "server/messages.h"

#include <algorithm>

namespace tessera::server {
namespace {

constexpr uint32_t kTlsRequest = 80'877'103, kGssRequest = 80'877'104, kCancelRequest = 80'877'102;

uint32_t LengthAt(std::string_view bytes, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<uint8_t>(bytes[at + i]);
  return v;
}

template <class T>
Result<T> Checked(T message, const MessageReader& reader) {
  TESSERA_TRY(reader.End());
  return message;
}

}  // namespace

Status ProtocolError(std::string message) { return {ErrorKind::kProtocolViolation, std::move(message)}; }

Result<size_t> FrameEnd(std::string_view bytes, bool is_first, size_t most) {
  const size_t head = is_first ? 0 : 1;
  if (bytes.size() < head + 4) return size_t{0};
  const size_t length = LengthAt(bytes, head);
  if (length < 4 || length > most) return ProtocolError("invalid length of a message: " + std::to_string(length));
  return bytes.size() < head + length ? 0 : head + length;
}

Message TakeFrame(std::string_view bytes, bool is_first) {
  return is_first ? Message{0, std::string(bytes.substr(4))} : Message{bytes[0], std::string(bytes.substr(5))};
}

uint64_t MessageReader::Number(size_t bytes) {
  uint64_t v = 0;
  for (const char c : Bytes(bytes)) v = v << 8 | static_cast<uint8_t>(c);
  return v;
}

std::string_view MessageReader::String() {
  const size_t end = rest_.find('\0');
  if (end == rest_.npos) {
    failed_ = true;
    rest_ = {};
    return {};
  }
  const std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  return text;
}

std::string_view MessageReader::Bytes(size_t size) {
  if (size > rest_.size()) {
    failed_ = true;
    rest_ = {};
    return {};
  }
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

Status MessageReader::End() const {
  if (failed_) return ProtocolError("insufficient data left in message");
  return rest_.empty() ? Status() : ProtocolError("invalid message format");
}

Result<StartupMessage> ReadStartup(std::string_view body) {
  MessageReader reader(body);
  StartupMessage message;
  const auto version = static_cast<uint32_t>(reader.Int32());
  if (version == kTlsRequest || version == kGssRequest) {
    message.kind = version == kTlsRequest ? StartupMessage::Kind::kTls : StartupMessage::Kind::kGssEncryption;
    return Checked(message, reader);
  }
  if (version == kCancelRequest) {
    message.kind = StartupMessage::Kind::kCancel;
    message.process = reader.Int32();
    message.key = reader.Int32();
    return Checked(message, reader);
  }
  if (version >> 16 != 3) {
    return Status(ErrorKind::kFeatureNotSupported, "unsupported frontend protocol " + std::to_string(version >> 16) +
                                                       "." + std::to_string(version & 0xFFFF) +
                                                       ": server supports 3.0");
  }
  message.minor = static_cast<int>(version & 0xFFFF);
  while (!reader.AtEnd()) {
    const std::string_view name = reader.String();
    if (name.empty()) break;
    message.parameters.emplace_back(name, reader.String());
  }
  return Checked(std::move(message), reader);
}

Result<ParseMessage> ReadParse(std::string_view body) {
  MessageReader reader(body);
  ParseMessage message;
  message.name = reader.String();
  message.sql = reader.String();
  for (int n = reader.Int16(); n > 0; --n) {
    message.types.push_back(reader.Int32());
    if (reader.failed()) break;
  }
  return Checked(std::move(message), reader);
}

namespace {

std::vector<int16_t> ReadFormats(MessageReader* reader) {
  std::vector<int16_t> formats;
  for (int n = reader->Int16(); n > 0; --n) {
    formats.push_back(reader->Int16());
    if (reader->failed()) break;
  }
  return formats;
}

}  // namespace

Result<BindMessage> ReadBind(std::string_view body) {
  MessageReader reader(body);
  BindMessage message;
  message.portal = reader.String();
  message.statement = reader.String();
  message.formats = ReadFormats(&reader);
  for (int n = static_cast<uint16_t>(reader.Int16()); n > 0; --n) {
    const int32_t size = reader.Int32();
    if (reader.failed()) break;
    if (size < -1) return ProtocolError("invalid length of a parameter: " + std::to_string(size));
    if (size < 0) {
      message.values.emplace_back();
    } else {
      message.values.emplace_back(reader.Bytes(static_cast<size_t>(size)));
    }
  }
  message.result_formats = ReadFormats(&reader);
  return Checked(std::move(message), reader);
}

Result<NameMessage> ReadName(std::string_view body) {
  MessageReader reader(body);
  NameMessage message;
  const char kind = static_cast<char>(reader.Byte());
  if (kind != 'S' && kind != 'P') return ProtocolError("invalid message format");
  message.is_portal = kind == 'P';
  message.name = reader.String();
  return Checked(std::move(message), reader);
}

Result<ExecuteMessage> ReadExecute(std::string_view body) {
  MessageReader reader(body);
  ExecuteMessage message;
  message.portal = reader.String();
  message.most_rows = reader.Int32();
  return Checked(std::move(message), reader);
}

bool IsBinary(const std::vector<int16_t>& formats, size_t i) {
  if (formats.empty()) return false;
  return formats[formats.size() == 1 ? 0 : i] == 1;
}

Status CheckFormats(const std::vector<int16_t>& formats, size_t things) {
  if (formats.size() > 1 && formats.size() != things) {
    return ProtocolError("message has " + std::to_string(formats.size()) + " formats but " + std::to_string(things) +
                         " values");
  }
  for (const int16_t format : formats) {
    if (format != 0 && format != 1) {
      return {ErrorKind::kInvalidParameterValue, "unsupported format code: " + std::to_string(format)};
    }
  }
  return {};
}

void MessageWriter::Begin(char type) {
  bytes_ += type;
  begin_ = BeginField();
}

void MessageWriter::String(std::string_view text) {
  bytes_ += text.substr(0, text.find('\0'));
  bytes_ += '\0';
}

/// (The length counts itself, but not in a field.)
void MessageWriter::End() { PutLength(begin_ - 4); }

size_t MessageWriter::BeginField() {
  bytes_.append(4, '\0');
  return bytes_.size();
}

void MessageWriter::EndField(size_t field) {
  const size_t size = bytes_.size() - field;
  for (size_t i = 0; i < 4; ++i) bytes_[field - 4 + i] = static_cast<char>(size >> (24 - 8 * i));
}

void MessageWriter::Number(uint64_t v, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) bytes_ += static_cast<char>(v >> (8 * i));
}

void MessageWriter::PutLength(size_t at) {
  const size_t size = bytes_.size() - at;
  for (size_t i = 0; i < 4; ++i) bytes_[at + i] = static_cast<char>(size >> (24 - 8 * i));
}

void WriteReport(const Report& report, MessageWriter* out) {
  const std::string_view severity = report.severity;
  out->Begin(severity == "WARNING" || severity == "NOTICE" ? 'N' : 'E');
  const auto field = [&](char code, std::string_view text) {
    if (text.empty()) return;
    out->Byte(code);
    out->String(text);
  };
  field('S', severity);
  field('V', severity);
  field('C', report.sqlstate);
  field('M', report.message.empty() ? "unknown error" : report.message);
  field('H', report.hint);
  if (report.position > 0) field('P', std::to_string(report.position));
  out->Byte('\0');
  out->End();
}

Report ReportOf(const Status& error, std::string_view text, size_t offset) {
  Report report;
  report.sqlstate = error.sqlstate();
  report.message = error.message();
  report.hint = error.hint();
  if (error.position() < 0) return report;
  const std::string_view before = text.substr(0, offset + static_cast<size_t>(error.position()));
  report.position = 1 + static_cast<int>(std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }));
  return report;
}

}  // namespace tessera::server
