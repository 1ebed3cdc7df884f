// One statement of the catalog's SQL. Private to tablet/catalog/.
//
// Start at: CatalogStatement. Thread-compatible, as the catalog.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tablet/catalog/catalog_file.h"

namespace tessera {

/// A prepared statement, which the catalog keeps for the next time: to prepare those of an INSERT took a third of its time.
/// The first error sticks and is returned by Step().
class CatalogStatement {
 public:
  CatalogStatement(CatalogFile* file, const char* sql) : file_(file), sql_(sql) {
    if (const auto kept = file->prepared_.find(sql); kept != file->prepared_.end()) {
      statement_ = kept->second;
      file->prepared_.erase(kept);
    } else {
      code_ = sqlite3_prepare_v3(file->db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
    }
  }
  ~CatalogStatement() {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    try {
      if (file_->prepared_.try_emplace(sql_, statement_).second) return;
    } catch (...) {  // no memory to keep it
    }
    sqlite3_finalize(statement_);
  }
  CatalogStatement(const CatalogStatement&) = delete;
  CatalogStatement& operator=(const CatalogStatement&) = delete;

  CatalogStatement& Bind(int64_t v) { return Check(sqlite3_bind_int64(statement_, ++bound_, v)); }
  CatalogStatement& Bind(uint64_t v) { return Bind(static_cast<int64_t>(v)); }
  CatalogStatement& Bind(std::string_view v) {
    return Check(sqlite3_bind_text(statement_, ++bound_, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT));
  }
  CatalogStatement& BindBlob(std::string_view v) {
    return Check(sqlite3_bind_blob(statement_, ++bound_, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT));
  }
  CatalogStatement& BindNull() { return Check(sqlite3_bind_null(statement_, ++bound_)); }

  /// True if there is a row to read.
  Result<bool> Step() {
    if (code_ == SQLITE_OK) {
      const int code = sqlite3_step(statement_);
      if (code == SQLITE_ROW) return true;
      if (code == SQLITE_DONE) return false;
      code_ = code;
    }
    return file_->Error(code_);
  }
  /// Starts anew; true if there is a row to read. Makes no message of an error.
  bool StepAgain() {
    sqlite3_reset(statement_);
    return sqlite3_step(statement_) == SQLITE_ROW;
  }
  /// Makes it ready for the next values.
  void Reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }
  /// Runs a statement without result and makes it ready for the next values.
  Status Run() {
    TESSERA_ASSIGN(bool row, Step());
    (void)row;
    Reset();
    return {};
  }

  // Columns of the current row. A value of another type than asked for, or an integer outside [least, greatest], makes
  // wrong() the name of its column.
  int64_t Integer(int column, int64_t least = INT64_MIN, int64_t greatest = INT64_MAX) {
    const int64_t value = sqlite3_column_int64(statement_, column);
    if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER || value < least || value > greatest) Wrong(column);
    return value;
  }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string Text(int column) { return Bytes(column, SQLITE_TEXT); }
  std::string Blob(int column) { return Bytes(column, SQLITE_BLOB); }
  /// Empty if all values that were asked for are what they may be.
  const std::string& wrong() const { return wrong_; }

 private:
  CatalogStatement& Check(int code) {
    if (code_ == SQLITE_OK) code_ = code;
    return *this;
  }
  std::string Bytes(int column, int type) {
    if (sqlite3_column_type(statement_, column) != type) Wrong(column);
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  void Wrong(int column) {
    const char* name = sqlite3_column_name(statement_, column);
    if (wrong_.empty()) wrong_ = std::string("a wrong ") + (name != nullptr ? name : "value");
  }

  CatalogFile* const file_;
  const std::string sql_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
  std::string wrong_;
};

/// The first value of the first row; 0: there is none.
inline Result<int64_t> QueryInteger(CatalogFile* file, const char* sql) {
  CatalogStatement query(file, sql);
  TESSERA_ASSIGN(const bool row, query.Step());
  return row ? query.Integer(0) : 0;
}

}  // namespace tessera
