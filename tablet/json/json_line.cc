#include "tablet/json/json_line.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using Json = nlohmann::json;

/// Takes what the parser finds, without a tree of it: nesting costs no stack.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(const JsonLine::Consumer& take) : take_(take) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Scalar(JsonValue::Kind::kNull, "null"); }
  bool boolean(bool v) override {
    value_.integer = v ? 1 : 0;
    return Scalar(JsonValue::Kind::kBoolean, v ? "true" : "false");
  }
  bool number_integer(number_integer_t v) override {
    value_.integer = v;
    value_.number = static_cast<double>(v);
    return Scalar(JsonValue::Kind::kInteger, std::to_string(v));
  }
  bool number_unsigned(number_unsigned_t v) override {
    value_.integer = static_cast<int64_t>(v);
    value_.number = static_cast<double>(v);
    return Scalar(v <= INT64_MAX ? JsonValue::Kind::kInteger : JsonValue::Kind::kNumber, std::to_string(v));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    value_.number = v;
    return Scalar(JsonValue::Kind::kNumber, text);
  }
  bool string(string_t& text) override {
    return Scalar(JsonValue::Kind::kText, depth_ > 1 ? Json(text).dump() : std::move(text));
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override {
    if (depth_++ > 0) Open('{');
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      name_ = std::move(name);
    } else {
      Separate();
      nested_ += Json(name).dump();
      nested_ += ':';
    }
    return true;
  }
  bool end_object() override { return Close('}'); }
  bool start_array(size_t) override {
    if (depth_ == 0) return NoObject();
    ++depth_;
    Open('[');
    return true;
  }
  bool end_array() override { return Close(']'); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while ..."
    const std::string what = error.what();
    const size_t at = what.find(": ");
    problem_ = at == std::string::npos ? what : what.substr(at + 2);
    return false;
  }

 private:
  bool NoObject() {
    problem_ = "the line is no object: each line of JSON lines is one, such as {\"a\": 1}";
    return false;
  }
  bool Scalar(JsonValue::Kind kind, std::string text) {
    if (depth_ == 0) return NoObject();
    if (depth_ > 1) {
      Separate();
      nested_ += text;
      return true;
    }
    value_.kind = kind;
    value_.text = std::move(text);
    take_(name_, std::move(value_));
    return true;
  }
  /// Before a value or a name within a nested one.
  void Separate() {
    if (!nested_.empty() && nested_.back() != '{' && nested_.back() != '[' && nested_.back() != ':') nested_ += ',';
  }
  void Open(char bracket) {
    Separate();
    nested_ += bracket;
  }
  bool Close(char bracket) {
    if (--depth_ == 0) return true;
    nested_ += bracket;
    if (depth_ > 1) return true;
    value_.kind = JsonValue::Kind::kNested;
    value_.text = std::exchange(nested_, {});
    take_(name_, std::move(value_));
    return true;
  }

  const JsonLine::Consumer& take_;
  size_t depth_ = 0;  ///< of the open object or array
  std::string name_, nested_, problem_;
  JsonValue value_;
};

}  // namespace

Status JsonLine::Read(std::string_view line, const Consumer& take) {
  Handler handler(take);
  if (Json::sax_parse(line.begin(), line.end(), &handler)) return {};
  return {ErrorKind::kBadCopyFormat, handler.problem()};
}

}  // namespace tessera
