// Status and Result<T>: how every function of Tessera reports failure. Nothing throws across a public header and
// only main() exits.
//
// A Status carries what a user needs to act: a message (what and where), an optional hint (what to do) and, for SQL
// errors, the byte offset in the statement that the caret goes under; and for programs its kind, which has an SQLSTATE
// (error_kinds.def). Thread-compatible, cheap when OK (one null pointer).
//
// Start at: Error(), TESSERA_TRY, TESSERA_ASSIGN.
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

enum class ErrorCode : uint8_t {
  kSql,          ///< the statement is wrong: syntax, names, types, values (exit status 1)
  kUnsupported,  ///< valid SQL that Tessera does not support; the message names the feature
  kConstraint,   ///< NOT NULL, PRIMARY KEY or a length was violated
  kIo,           ///< a file or directory could not be read or written
  kCorrupt,      ///< stored or shipped bytes fail a check (checksum, verifier)
  kBusy,         ///< another process holds a lock that this one needs
  kCancelled,    ///< the user asked to stop
  kResource,     ///< memory, disk or a limit of the machine ran out
  kDevice,       ///< CUDA reported an error
  kInternal,     ///< one of our invariants is broken: a bug
};

/// What an error is, in more detail than its code: rows of error_kinds.def.
enum class ErrorKind : uint8_t {
#define TESSERA_ERROR_KIND(name, sqlstate, code, what) k##name,
#include "base/error_kinds.def"
};

/// The first kind of the code.
ErrorKind KindOf(ErrorCode code);
ErrorCode CodeOf(ErrorKind kind);
/// Five letters.
const char* SqlStateOf(ErrorKind kind);

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status Ok() { return {}; }
  Status(ErrorCode code, std::string message, std::string hint = {}, int position = -1)
      : Status(KindOf(code), std::move(message), std::move(hint), position) {}
  Status(ErrorKind kind, std::string message, std::string hint = {}, int position = -1)
      : rep_(std::make_shared<Rep>(Rep{kind, position, std::move(message), std::move(hint)})) {}

  bool ok() const { return rep_ == nullptr; }
  /// REQUIRES: !ok(), as for all accessors below.
  ErrorCode code() const { return CodeOf(rep_->kind); }
  /// A status that is made of another, with more words, takes this and not the code.
  ErrorKind kind() const { return rep_->kind; }
  const char* sqlstate() const { return SqlStateOf(rep_->kind); }
  const std::string& message() const { return rep_->message; }
  /// What to do about it; empty if there is nothing to say.
  const std::string& hint() const { return rep_->hint; }
  /// Byte offset in the SQL text, from 0; -1 if the error has none.
  int position() const { return rep_->position; }

  /// The same error with a position, unless it has one already.
  Status At(int position) const {
    if (ok() || rep_->position >= 0) return *this;
    return {rep_->kind, rep_->message, rep_->hint, position};
  }

 private:
  struct Rep {
    ErrorKind kind;
    int position;
    std::string message;
    std::string hint;
  };
  std::shared_ptr<const Rep> rep_;
};

/// A value or the error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                  // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: implicit on purpose

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  /// REQUIRES: ok()
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }

 private:
  Status status_;
  std::optional<T> value_;
};

inline Status SqlError(std::string message, int position = -1, std::string hint = {}) {
  return {ErrorCode::kSql, std::move(message), std::move(hint), position};
}
inline Status SqlError(ErrorKind kind, std::string message, int position = -1, std::string hint = {}) {
  return {kind, std::move(message), std::move(hint), position};
}
inline Status Unsupported(std::string message, int position = -1, std::string hint = {}) {
  return {ErrorCode::kUnsupported, std::move(message), std::move(hint), position};
}

/// The user cancelled the statement.
inline Status Cancelled() { return {ErrorCode::kCancelled, "canceling statement due to user request"}; }

#define TESSERA_CONCAT_(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_(a, b)

/// Returns from the enclosing function if `expr` (a Status) is an error.
#define TESSERA_TRY(expr)                                                           \
  do {                                                                              \
    if (::tessera::Status try_status = (expr); !try_status.ok()) return try_status; \
  } while (0)

/// TESSERA_ASSIGN(auto x, F()): returns the error of F() (a Result) or moves its value into x.
#define TESSERA_ASSIGN(lhs, expr) TESSERA_ASSIGN_(TESSERA_CONCAT(result_, __LINE__), lhs, expr)
#define TESSERA_ASSIGN_(result, lhs, expr)  \
  auto result = (expr);                     \
  if (!result.ok()) return result.status(); \
  lhs = std::move(result).value()

}  // namespace tessera
