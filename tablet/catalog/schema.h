// What the catalog says of a table: its columns, keys and constraints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/values/types.h"

namespace tessera {

struct ColumnSchema {
  std::string name;
  SqlType type;
  bool not_null = false;
  /// What a row gets that is stored without a value for the column, as text of its type; without it NULL.
  std::optional<std::string> default_text = {};
  /// The same as an expression of SQL that each row computes anew: it depends on time or chance.
  std::optional<std::string> default_expression = {};
  /// GENERATED ALWAYS AS (text) STORED: an expression of SQL over the other columns, which gives its value.
  std::optional<std::string> generated_text = {};

  bool HasDefault() const { return default_text || default_expression; }
};

/// An expression of SQL that is not false for any row.
struct CheckConstraint {
  std::string name;
  std::string text;
};

/// No two rows are equal in these columns; rows with a NULL in one of them are equal to none.
struct UniqueKey {
  std::string name;
  std::vector<int> columns;
};

struct TableSchema {
  std::string name;
  std::vector<ColumnSchema> columns;
  std::vector<int> primary_key;  ///< column numbers; empty if none. Its columns are NOT NULL.
  uint32_t tablet_rows = 0;      ///< WITH (tablet_rows = N), 1 .. 2^20; 0: chosen at the first load
  std::vector<CheckConstraint> checks = {};
  std::vector<UniqueKey> unique_keys = {};
  /// WITH (cluster_by = ...): the columns by which each load sorts its rows; empty: none.
  std::vector<int> cluster_by = {};
  /// WITH (distribute_by = ...): the columns by whose values rows are cut into buckets (tablet/catalog/buckets.h); empty: none.
  std::vector<int> distribute_by = {};

  /// Column number, or -1.
  int Find(std::string_view column) const;
};

}  // namespace tessera
