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
  std::string comment = {};

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

/// A row whose values in `columns` are none of them NULL has an equal one in the table `referenced`, in the columns of one of
/// its keys: it refers to that row.
struct ForeignKey {
  /// What becomes of rows that refer to one that goes, or gets another key.
  enum class Action : uint8_t {
    kNoAction,    ///< an error, at the end of the statement or of the transaction
    kRestrict,    ///< an error, at the end of the statement
    kCascade,     ///< they go, too, or get the other key
    kSetNull,     ///< they refer to no row
    kSetDefault,  ///< they get the defaults of their columns
  };
  std::string name;
  std::vector<int> columns;
  std::string referenced;            ///< may be the table itself
  std::vector<std::string> to = {};  ///< columns of `referenced`, as many as `columns`
  Action on_delete = Action::kNoAction, on_update = Action::kNoAction;
  bool deferrable = false;
  bool deferred = false;  ///< checked at the end of the transaction

  bool operator==(const ForeignKey&) const = default;
};

/// A materialised view is a table with the rows that a query had when they were last computed.
struct MaterializedQuery {
  std::string text;
  bool populated = true;  ///< false: WITH NO DATA, and it cannot be read

  bool operator==(const MaterializedQuery&) const = default;
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

  std::vector<ForeignKey> foreign_keys = {};
  std::optional<MaterializedQuery> materialized = {};  ///< of a materialised view
  std::string comment = {};

  /// Column number, or -1.
  int Find(std::string_view column) const;
};

}  // namespace tessera
