// Random data and random queries, each in two dialects at once: Tessera's and SQLite's.
//
// Every expression is built as a Piece: its text in both dialects, its type, and a bound of its values, from which the
// generator knows that nothing overflows in Tessera and that SQLite stays with integers. The mapping of the dialects,
// class by class:
//
// | class              | Tessera                    | SQLite                                                          |
// |--------------------|----------------------------|-----------------------------------------------------------------|
// | columns            | typed                      | without a type: no affinity, no conversions                     |
// | integers           | SMALLINT, INTEGER, BIGINT  | INTEGER. Overflow is an error here and REAL there: bounds keep  |
// |                    |                            | both away from it; a REAL where an integer is due is a failure  |
// | x / 0, x % 0       | NULL                       | NULL; of doubles too                                            |
// | DECIMAL(p,s)       | exact, scale s             | the integer value * 10^s; the generator keeps the scale of each |
// |                    |                            | expression and writes the multiplications                       |
// | DECIMAL to 38      | 128 bits                   | canonical text, compared by decimal_compare, decimal_min,       |
// |                    |                            | decimal_max and the collation decimal_text; no arithmetic       |
// | DECIMAL / DECIMAL  | DOUBLE PRECISION           | (a / 10^s) / (b / 10^t), in REAL                                |
// | DOUBLE PRECISION   | IEEE                       | REAL. Stored values are small multiples of 1/8, so that sums    |
// |                    |                            | are exact in any order; nothing rounded is summed               |
// | REAL               | IEEE single                | REAL: stored values are exact, arithmetic on them is done in    |
// |                    |                            | DOUBLE                                                          |
// | NaN, infinity      | values                     | SQLite has no NaN: left to tests/sql                            |
// | BOOLEAN            | true, false                | 1, 0                                                            |
// | text               | by bytes                   | BINARY collation, the same                                      |
// | LIKE               | case-sensitive, escape '\' | PRAGMA case_sensitive_like, ESCAPE '\' written where it is used |
// | DATE, TIMESTAMP    | typed                      | ISO 8601 text; date(), datetime(), strftime(), julianday()      |
// | + INTERVAL months  | day cut to the month       | function add_months: date() would roll over                     |
// | rounding           | half away, half to even    | functions half_away, floor_div, rint: SQLite's round() is       |
// |                    |                            | decimal                                                         |
// | CAST to text       | of integer, decimal, date  | CAST, function decimal_text; floats print differently: not      |
// |                    |                            | generated                                                       |
// | ORDER BY, GROUP BY | any expression             | of booleans likely(expression): SQLite folds x AND 0 to 0 and   |
// |                    |                            | takes it for a position                                         |
// | NULL in ORDER BY   | the largest value          | NULLS FIRST or LAST always written                              |
// | AVG                | DOUBLE PRECISION           | avg(); of decimals (sum / 10^s) / count                         |
// | SUM of no rows     | NULL                       | NULL                                                            |
// | OFFSET alone       | OFFSET n                   | LIMIT -1 OFFSET n                                               |
// | set operations     | INTERSECT first            | from left to right: each one over SELECT * FROM (...)           |
// | windows            | peers are told apart by    | the same: without that the order of peers is left to chance, and |
// |                    | all outputs, or make no    | only functions are generated that do not depend on it; one of   |
// |                    | difference                 | a query may number rows that are equal in all outputs           |
// | INTERSECT ALL ...  | INTERSECT ALL, EXCEPT ALL  | INTERSECT, EXCEPT, with row_number() of equal rows              |
//
// The functions named here are registered by differential_test.cc.
//
// Start at: MakeWorld, QueryGenerator::Next. One thread at a time; the same seed gives the same queries everywhere.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tessera {

enum class PieceKind : uint8_t { kInt, kDecimal, kHuge, kDouble, kText, kDate, kTimestamp, kBool };
inline constexpr int kPieceKinds = 8;

/// An expression in both dialects.
struct Piece {
  std::string ours, theirs;
  PieceKind kind = PieceKind::kInt;
  int width = 32;         ///< kInt: 16, 32 or 64 bits
  int scale = 0;          ///< kDecimal, kHuge
  int precision = 0;      ///< kDecimal: of its type
  double bound = 0;       ///< kInt, kDecimal (of the scaled integer), kDouble: no magnitude is greater
  int bits = 0;           ///< kDouble: values are multiples of 2^-bits; -1: rounded somewhere
  bool single = false;    ///< kDouble: a REAL
  bool constant = false;  ///< no column in it
};

struct WorldColumn {
  std::string name;
  std::string type;            ///< as CREATE TABLE says it
  Piece form;                  ///< everything but the text
  std::string domain;          ///< columns of one domain are joined; "" none
  std::vector<Piece> values;   ///< row by row; the texts are literals; "NULL"
  std::vector<size_t> sample;  ///< rows that are not NULL, for constants
};

struct WorldTable {
  std::string name;
  std::vector<WorldColumn> columns;
  std::string primary_key;  ///< column name, "" if none
  size_t rows = 0;
};

/// The tables of one run, with data.
struct World {
  std::vector<WorldTable> tables;
};
/// `factor`: how many times the usual number of rows the largest table has.
World MakeWorld(uint64_t seed, int factor);

/// A query in both dialects and how to compare its results.
struct DifferentialQuery {
  std::string ours, theirs;
  std::vector<Piece> outputs;
  bool distinct = false;           ///< SELECT DISTINCT
  bool ordered = false;            ///< rows come in one order only
  std::vector<size_t> order_keys;  ///< else: these outputs come in one order only
  int64_t limit = -1;      ///< LIMIT without an order: any `limit` rows of theirs, which has no LIMIT, are right
  const char* shape = "";  ///< for the statistics
};

class QueryGenerator {
 public:
  QueryGenerator(const World& world, uint64_t seed) : world_(world), random_(seed) {}
  DifferentialQuery Next();
  /// The type of a column that holds an output.
  static std::string TypeOf(const Piece& piece);

 private:
  struct Leaf {
    Piece piece;
    const WorldColumn* column = nullptr;  ///< where constants beside it come from; nullptr for aggregates
  };
  struct Relation {
    const WorldTable* table;
    std::string alias;
  };

  uint64_t Below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  int Between(int low, int high) { return low + static_cast<int>(Below(static_cast<uint64_t>(high - low + 1))); }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }

  // The FROM clause.
  void MakeFrom();
  std::string ColumnText(const Relation& relation, const WorldColumn& column) const;
  Piece ColumnPiece(size_t relation, const WorldColumn& column) const;
  void AddJoin(size_t relation);

  // Expressions of a kind, at most `depth` operators deep.
  Piece Make(PieceKind kind, int depth);
  Piece MakeInt(int depth);
  Piece MakeDecimal(int depth);
  Piece MakeDouble(int depth);
  Piece MakeText(int depth);
  Piece MakeDate(int depth);
  Piece MakeTimestamp(int depth);
  Piece MakeHuge(int depth);
  Piece Predicate(int depth);
  Piece Comparison(int depth);
  Piece Like(int depth);
  Piece In(int depth);
  Piece Conditional(PieceKind kind, int depth);
  PieceKind AnyKind();
  PieceKind NumberKind();
  const Leaf* FindLeaf(PieceKind kind);
  Piece LeafOrConstant(PieceKind kind);
  Piece Constant(PieceKind kind);
  /// A constant that `like` may equal.
  Piece ConstantLike(const Leaf* like, PieceKind kind);
  Piece Integer(int64_t value) const;
  /// a op b; op 0: any. Where the result could be out of bounds, an operand instead.
  Piece Arithmetic(Piece a, Piece b, char op = 0);
  Piece Compare(const std::string& op, const Piece& a, const Piece& b);
  /// Makes two numbers comparable in SQLite: one scale, or both doubles.
  void Align(Piece* a, Piece* b) const;
  Piece ToDouble(const Piece& p) const;
  Piece Rescaled(const Piece& p, int scale) const;
  Piece Aggregate();

  /// An arm of a set operation, or several that are combined: a query without parentheses.
  struct Arm {
    std::string ours, theirs;
    std::string select, from_ours, from_theirs;  ///< of an arm alone
    std::vector<Piece> outputs;
  };
  Arm MakeArm(const std::vector<PieceKind>& kinds);
  /// Gives the columns of all arms one type and one scale. False if a decimal does not hold all digits.
  bool UniteColumn(size_t column, std::vector<Arm>* arms) const;
  Arm Combine(const std::string& op, char name, const Arm& left, const Arm& right) const;
  /// Several arms with operators between them. Its ours has no parentheses around it.
  /// Its columns are `name`0, `name`1, ...
  Arm SetOperation(char name);
  DifferentialQuery OfSetOperation();

  /// A window function over outputs of a block; false: what was drawn is none. `numbers_peers`: its values differ between
  /// rows that are equal in all outputs.
  bool WindowCall(const std::vector<Piece>& outputs, Piece* call, bool* numbers_peers);
  DifferentialQuery Windowed();
  /// WITH RECURSIVE over integers.
  DifferentialQuery Recursive();

  DifferentialQuery Plain();
  DifferentialQuery Grouped();
  void AddOrder(DifferentialQuery* q, bool distinct, std::string* ours, std::string* theirs);
  std::string Where(std::string* theirs);

  const World& world_;
  std::mt19937_64 random_;
  std::vector<Relation> relations_;
  std::string from_ours_, from_theirs_;
  std::vector<std::string> conjuncts_ours_, conjuncts_theirs_;
  std::vector<Leaf> leaves_;
};

}  // namespace tessera
