#include "tests/differential/query_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera {
namespace {

using Kind = PieceKind;

constexpr double kLargest = 4e18;              // of integers in SQLite
constexpr double kMostRows = 1e5;              // of a join: sums are bounded by it
constexpr double kExact = 4503599627370496.0;  // 2^52

const char* const kWords[] = {"alpha", "beta",  "Beta", "gamma", "delta", "delta ray", "epsilon", "zeta", "a%b",
                              "a_b",   "größe", "日本", "",      " pad ", "ALPHA",     "it's",    "b\\c", "omega"};

double Power10(int n) { return std::pow(10.0, n); }

std::string Power10Text(int n) { return "1" + std::string(static_cast<size_t>(n), '0'); }

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    out += c;
    if (c == '\'') out += c;
  }
  return out + "'";
}

/// `v` * 10^-scale with all digits.
std::string DecimalText(int64_t v, int scale) {
  std::string digits = std::to_string(v < 0 ? -v : v);
  if (digits.size() <= static_cast<size_t>(scale))
    digits.insert(0, static_cast<size_t>(scale) + 1 - digits.size(), '0');
  if (scale > 0) digits.insert(digits.size() - static_cast<size_t>(scale), ".");
  return (v < 0 ? "-" : "") + digits;
}

Piece Literal(const Piece& form, std::string ours, std::string theirs) {
  Piece p = form;
  p.ours = std::move(ours);
  p.theirs = std::move(theirs);
  p.constant = true;
  return p;
}

Piece DecimalLiteral(int64_t v, int scale) {
  Piece form;
  form.kind = Kind::kDecimal;
  form.scale = scale;
  form.bound = std::fabs(static_cast<double>(v));
  const std::string text = DecimalText(v, scale);
  // As many digits as are written, but for zeros before the point.
  form.precision = static_cast<int>(std::to_string(std::abs(v)).size());
  form.precision = std::max({1, form.precision, scale});
  return Literal(form, v < 0 ? "(" + text + ")" : text, fmt::format("({})", v));
}

/// A multiple of 2^-3.
Piece DoubleLiteral(int64_t eighths) {
  Piece form;
  form.kind = Kind::kDouble;
  form.bits = 3;
  form.bound = std::fabs(static_cast<double>(eighths) / 8);
  const std::string text =
      fmt::format("({}{}.{:03}e0)", eighths < 0 ? "-" : "", std::abs(eighths) / 8, std::abs(eighths) % 8 * 125);
  return Literal(form, text, text);
}

Piece DateLiteral(int day) {
  // Days since 1992-01-01, by the months of the years 1992 to 2000 (no century in between without a leap day).
  int year = 1992, month = 1;
  auto length = [&] {
    const int lengths[] = {31, year % 4 == 0 ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return lengths[month - 1];
  };
  while (day >= length()) {
    day -= length();
    if (++month > 12) {
      month = 1;
      ++year;
    }
  }
  Piece form;
  form.kind = Kind::kDate;
  const std::string text = fmt::format("{:04}-{:02}-{:02}", year, month, day + 1);
  return Literal(form, "DATE '" + text + "'", "'" + text + "'");
}

Piece TextLiteral(const std::string& text) {
  Piece form;
  form.kind = Kind::kText;
  return Literal(form, Quoted(text), Quoted(text));
}

Piece BoolLiteral(bool v) {
  Piece form;
  form.kind = Kind::kBool;
  return Literal(form, v ? "true" : "false", v ? "1" : "0");
}

// ---- Data

class WorldMaker {
 public:
  explicit WorldMaker(uint64_t seed) : random_(seed) {}

  World Make(int factor) {
    Facts(Between(180, 320) * factor);
    Dims(25);
    Events(Between(40, 70));
    Small();
    Steady(30);
    Vacant();
    return std::move(world_);
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  int Between(int low, int high) { return low + static_cast<int>(Below(static_cast<uint64_t>(high - low + 1))); }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }
  /// Small numbers are much more frequent.
  int Skewed(int n) { return static_cast<int>(Below(Below(static_cast<uint64_t>(n)) + 1)); }

  void Start(const char* name, int rows, const char* primary_key = "") {
    world_.tables.push_back({name, {}, primary_key, static_cast<size_t>(rows)});
  }

  /// Adds a column; make(row) gives its values, `nulls` percent of them become NULL.
  template <class F>
  void Add(const char* name, const char* type, Piece form, const char* domain, int nulls, F make) {
    WorldTable& table = world_.tables.back();
    WorldColumn column{name, type, form, domain, {}, {}};
    for (size_t row = 0; row < table.rows; ++row) {
      if (Chance(nulls)) {
        column.values.push_back(Literal(form, "NULL", "NULL"));
        continue;
      }
      const Piece value = make(static_cast<int>(row));
      column.sample.push_back(row);
      column.values.push_back(Literal(form, value.ours, value.theirs));
    }
    table.columns.push_back(std::move(column));
  }

  static Piece Form(Kind kind, int width = 32, int scale = 0, double bound = 0) {
    Piece p;
    p.kind = kind;
    p.width = width;
    p.scale = scale;
    p.bound = bound;
    return p;
  }
  static Piece DecimalForm(int precision, int scale, double bound) {
    Piece p = Form(Kind::kDecimal, 0, scale, bound);
    p.precision = precision;
    return p;
  }
  static Piece DoubleForm(bool single) {
    Piece p = Form(Kind::kDouble, 32, 0, 5000);
    p.bits = 3;
    p.single = single;
    return p;
  }
  static Piece Int(int64_t v) {
    Piece p;
    p.ours = p.theirs = std::to_string(v);
    return p;
  }
  static Piece Huge(int64_t high) {
    // Beyond 64 bits: 10^20 * high + 0.0625, to four digits.
    const std::string text = high == 0 ? "0.0625" : fmt::format("{}00000000000000000000.0625", high);
    Piece p;
    p.ours = text;
    p.theirs = "'" + text + "'";
    return p;
  }
  Piece Word() { return TextLiteral(kWords[Skewed(static_cast<int>(std::size(kWords)))]); }
  Piece Moment() {
    Piece d = DateLiteral(Skewed(60) * 30 + Between(0, 2));
    const std::string text =
        fmt::format("{} {:02}:{:02}:{:02}", d.theirs.substr(1, 10), Between(0, 3) * 7, Skewed(60), Between(0, 59));
    d.ours = "TIMESTAMP '" + text + "'";
    d.theirs = "'" + text + "'";
    return d;
  }

  void AddCommon(int nulls) {
    Add("k", "INTEGER", Form(Kind::kInt, 32, 0, 30), "k", nulls, [&](int) { return Int(Skewed(25)); });
    // Only compared, grouped and joined: nothing can be added to it.
    Add("x", "BIGINT", Form(Kind::kInt, 64, 0, 9.3e18), "x", nulls, [&](int) {
      static constexpr int64_t kValues[] = {INT64_MAX, INT64_MIN + 1, INT64_MAX - 1, INT64_MIN + 2, 0, 1,
                                            -1,        255,           65536,         INT64_MAX / 2};
      return Int(kValues[Skewed(10)]);
    });
    Add("b", "BIGINT", Form(Kind::kInt, 64, 0, 1.1e12), "b", nulls,
        [&](int) { return Int((Chance(30) ? -1 : 1) * (1000000000000 + 1000000007 * int64_t{Skewed(40)})); });
    Add("n", "DECIMAL(9,2)", DecimalForm(9, 2, 100000), "n", nulls,
        [&](int) { return DecimalLiteral(Between(-40, 360) * 25, 2); });
    Add("w", "DECIMAL(25,3)", DecimalForm(25, 3, 1e12), "n", nulls, [&](int) {
      return DecimalLiteral(Chance(80) ? Between(-40, 360) * 250 : Between(-900, 900) * int64_t{1000000007}, 3);
    });
    Add("h", "DECIMAL(38,4)", Form(Kind::kHuge, 0, 4), "h", nulls, [&](int) { return Huge(Skewed(30) - 8); });
    Add("d", "DOUBLE PRECISION", DoubleForm(false), "d", nulls, [&](int) {
      return Chance(3) ? Literal(DoubleForm(false), "(-0.0e0)", "(-0.0)") : DoubleLiteral(Between(-300, 1200));
    });
    Add("t", "TEXT", Form(Kind::kText), "t", nulls, [&](int) { return Word(); });
    Add("dt", "DATE", Form(Kind::kDate), "dt", nulls,
        [&](int) { return DateLiteral(Skewed(60) * 30 + Between(0, 2)); });
    Add("ts", "TIMESTAMP", Form(Kind::kTimestamp), "ts", nulls, [&](int) { return Moment(); });
    Add("f", "BOOLEAN", Form(Kind::kBool), "", nulls, [&](int) { return BoolLiteral(Chance(60)); });
  }

  void Facts(int rows) {
    Start("facts", rows);
    Add("id", "INTEGER NOT NULL", Form(Kind::kInt, 32, 0, 10000), "", 0, [](int row) { return Int(row); });
    AddCommon(8);
    Add("s", "SMALLINT", Form(Kind::kInt, 16, 0, 50), "k", 5, [&](int) { return Int(Between(-50, 50)); });
    Add("r", "REAL", DoubleForm(true), "d", 10, [&](int) { return DoubleLiteral(2 * Between(-100, 500)); });
    Add("u", "VARCHAR(24)", Form(Kind::kText), "", 4,
        [](int row) { return TextLiteral(fmt::format("Unique#{:06}", row * 37 % 100003)); });
    Add("code", "VARCHAR(6)", Form(Kind::kText), "", 0,
        [&](int) { return TextLiteral(std::to_string(Between(-999, 9999))); });
  }

  void Dims(int rows) {
    Start("dims", rows, "id");
    Add("id", "INTEGER", Form(Kind::kInt, 32, 0, 30), "k", 0, [](int row) { return Int(row); });
    Add("g", "SMALLINT", Form(Kind::kInt, 16, 0, 6), "g", 4, [&](int) { return Int(Between(0, 5)); });
    Add("t", "TEXT", Form(Kind::kText), "t", 8, [&](int) { return Word(); });
    Add("n", "DECIMAL(12,3)", DecimalForm(12, 3, 1e6), "n", 8,
        [&](int) { return DecimalLiteral(Between(-40, 360) * 250, 3); });
    Add("dt", "DATE", Form(Kind::kDate), "dt", 8, [&](int) { return DateLiteral(Skewed(60) * 30 + Between(0, 2)); });
    Add("d", "DOUBLE PRECISION", DoubleForm(false), "d", 8, [&](int) { return DoubleLiteral(Between(-50, 50)); });
    Add("f", "BOOLEAN", Form(Kind::kBool), "", 8, [&](int) { return BoolLiteral(Chance(50)); });
  }

  void Events(int rows) {
    Start("events", rows);
    Add("id", "INTEGER", Form(Kind::kInt, 32, 0, 10000), "", 0, [](int row) { return Int(row); });
    AddCommon(15);
  }

  void Small() {
    Start("small", 6, "g");
    Add("g", "SMALLINT", Form(Kind::kInt, 16, 0, 6), "g", 0, [](int row) { return Int(row); });
    Add("t", "VARCHAR(12)", Form(Kind::kText), "t", 15, [&](int) { return Word(); });
    Add("d", "REAL", DoubleForm(true), "d", 15, [&](int) { return DoubleLiteral(Between(-20, 20)); });
    Add("n", "DECIMAL(20,1)", DecimalForm(20, 1, 1e5), "n", 15,
        [&](int) { return DecimalLiteral(Between(-10, 99) * 5, 1); });
  }

  /// Columns that are constant or NULL throughout.
  void Steady(int rows) {
    Start("steady", rows);
    Add("id", "INTEGER", Form(Kind::kInt, 32, 0, 10000), "", 0, [](int row) { return Int(row); });
    Add("k", "INTEGER", Form(Kind::kInt, 32, 0, 30), "k", 0, [](int) { return Int(3); });
    Add("t", "TEXT", Form(Kind::kText), "t", 0, [](int) { return TextLiteral("alpha"); });
    Add("n", "DECIMAL(9,2)", DecimalForm(9, 2, 1000), "n", 50, [](int) { return DecimalLiteral(150, 2); });
    Add("x", "INTEGER", Form(Kind::kInt, 32, 0, 1), "k", 100, [](int) { return Int(0); });
    Add("y", "TEXT", Form(Kind::kText), "t", 100, [](int) { return TextLiteral(""); });
    Add("d", "DOUBLE PRECISION", DoubleForm(false), "", 0, [](int) { return DoubleLiteral(4); });
  }

  void Vacant() {
    Start("vacant", 0);
    Add("id", "INTEGER", Form(Kind::kInt, 32, 0, 10000), "k", 0, [](int row) { return Int(row); });
    AddCommon(0);
  }

  World world_;
  std::mt19937_64 random_;
};

Piece Of(Kind kind, std::string ours, std::string theirs) {
  Piece p;
  p.kind = kind;
  p.ours = std::move(ours);
  p.theirs = std::move(theirs);
  return p;
}

/// The text of an expression in which {} stands for `a` (and a second one for `b`), the same in both dialects.
Piece Both(Kind kind, const char* format, const Piece& a) {
  Piece p = a;
  p.kind = kind;
  p.ours = fmt::format(fmt::runtime(format), a.ours);
  p.theirs = fmt::format(fmt::runtime(format), a.theirs);
  return p;
}
Piece Both(Kind kind, const char* format, const Piece& a, const Piece& b) {
  Piece p = a;
  p.kind = kind;
  p.constant = a.constant && b.constant;
  p.ours = fmt::format(fmt::runtime(format), a.ours, b.ours);
  p.theirs = fmt::format(fmt::runtime(format), a.theirs, b.theirs);
  return p;
}

/// upper or lower. SQLite's know ASCII only; of the words' other letters one has another case.
Piece Cased(bool upper, const Piece& a) {
  Piece p = Both(Kind::kText, upper ? "upper({})" : "lower({})", a);
  p.theirs = fmt::format(fmt::runtime(upper ? "replace({}, 'ö', 'Ö')" : "replace({}, 'Ö', 'ö')"), p.theirs);
  return p;
}

/// SQLite's key of ORDER BY. A COLLATE reaches everything around it: it stands at the top only.
std::string OrderKey(const Piece& p, const std::string& theirs) {
  if (p.kind == Kind::kBool) return "likely(" + theirs + ")";
  return p.kind == Kind::kHuge ? theirs + " COLLATE decimal_text" : theirs;
}

std::string BigintCast(const Piece& p) { return "CAST(" + p.ours + " AS BIGINT)"; }

int PrecisionOf(const Piece& p) {
  if (p.kind == Kind::kDecimal) return p.precision;
  return p.width == 16 ? 5 : p.width == 32 ? 10 : 19;
}
int ScaleOf(const Piece& p) { return p.kind == Kind::kDecimal ? p.scale : 0; }

/// Whether a decimal holds all digits of both; if not, Tessera goes on in DOUBLE PRECISION.
bool HaveCommonDecimal(const Piece& a, const Piece& b) {
  const int scale = std::max(ScaleOf(a), ScaleOf(b));
  return std::max(PrecisionOf(a) - ScaleOf(a), PrecisionOf(b) - ScaleOf(b)) + scale <= 38;
}

double LimitOf(int width) { return width == 16 ? 32767.0 : width == 32 ? 2147483647.0 : kLargest; }

}  // namespace

World MakeWorld(uint64_t seed, int factor) { return WorldMaker(seed).Make(factor); }

std::string QueryGenerator::TypeOf(const Piece& p) {
  switch (p.kind) {
    case Kind::kInt:
      return p.width == 64 ? "BIGINT" : p.width == 32 ? "INTEGER" : "SMALLINT";
    case Kind::kDecimal:
    case Kind::kHuge:
      return fmt::format("DECIMAL(38,{})", p.scale);
    case Kind::kDouble:
      return p.single ? "REAL" : "DOUBLE PRECISION";
    case Kind::kText:
      return "TEXT";
    case Kind::kDate:
      return "DATE";
    case Kind::kTimestamp:
      return "TIMESTAMP";
    case Kind::kBool:
      return "BOOLEAN";
  }
  return "";
}

// ---- Leaves and constants

const QueryGenerator::Leaf* QueryGenerator::FindLeaf(Kind kind) {
  size_t n = 0;
  for (const Leaf& l : leaves_) n += l.piece.kind == kind ? 1 : 0;
  if (n == 0) return nullptr;
  size_t i = Below(n);
  for (const Leaf& l : leaves_) {
    if (l.piece.kind == kind && i-- == 0) return &l;
  }
  return nullptr;
}

Piece QueryGenerator::Integer(int64_t v) const {
  Piece p;
  p.constant = true;
  p.bound = std::fabs(static_cast<double>(v));
  p.width = p.bound > LimitOf(32) ? 64 : 32;
  p.ours = p.theirs = v < 0 ? fmt::format("({})", v) : std::to_string(v);
  return p;
}

Piece QueryGenerator::Constant(Kind kind) {
  switch (kind) {
    case Kind::kInt:
      return Integer(Chance(90) ? Between(-10, 40) : Between(-100000, 100000));
    case Kind::kDecimal:
      return Chance(50) ? DecimalLiteral(Between(-100, 9000), 2) : DecimalLiteral(Between(-100, 900) * 5, 1);
    case Kind::kHuge: {
      Piece form = Of(kind, "", "");
      form.scale = 4;
      return Literal(form, "CAST(100000000000000000000.0625 AS DECIMAL(38,4))", "'100000000000000000000.0625'");
    }
    case Kind::kDouble:
      return DoubleLiteral(Between(-400, 1200));
    case Kind::kText:
      return TextLiteral(kWords[Below(std::size(kWords))]);
    case Kind::kDate:
      return DateLiteral(Between(0, 1800));
    case Kind::kTimestamp: {
      Piece d = DateLiteral(Between(0, 1800));
      const std::string text = fmt::format("{} {:02}:{:02}:00", d.theirs.substr(1, 10), Between(0, 23), Between(0, 59));
      return Literal(Of(kind, "", ""), "TIMESTAMP '" + text + "'", "'" + text + "'");
    }
    case Kind::kBool:
      return BoolLiteral(Chance(50));
  }
  return {};
}

Piece QueryGenerator::ConstantLike(const Leaf* like, Kind kind) {
  if (like == nullptr || like->column == nullptr || like->column->sample.empty() || Chance(15)) return Constant(kind);
  const WorldColumn& column = *like->column;
  Piece value = column.values[column.sample[Below(column.sample.size())]];
  if (kind == Kind::kInt) value.width = value.ours.size() > 9 ? 64 : 32;
  if (kind == Kind::kDouble) value.single = false;
  return value;
}

Piece QueryGenerator::LeafOrConstant(Kind kind) {
  const Leaf* leaf = FindLeaf(kind);
  return leaf == nullptr || Chance(7) ? Constant(kind) : leaf->piece;
}

Kind QueryGenerator::NumberKind() {
  const Kind kinds[] = {Kind::kInt, Kind::kInt, Kind::kDecimal, Kind::kDouble};
  return kinds[Below(std::size(kinds))];
}

Kind QueryGenerator::AnyKind() {
  const Kind kinds[] = {Kind::kInt,  Kind::kInt,  Kind::kInt,  Kind::kDecimal,   Kind::kDecimal, Kind::kDouble,
                        Kind::kText, Kind::kText, Kind::kDate, Kind::kTimestamp, Kind::kBool,    Kind::kHuge};
  return kinds[Below(std::size(kinds))];
}

// ---- Numbers

Piece QueryGenerator::ToDouble(const Piece& p) const {
  if (p.kind == Kind::kDouble) return p;
  Piece d = p;
  d.kind = Kind::kDouble;
  d.single = false;
  d.bits = 0;
  d.theirs = fmt::format("(CAST({} AS REAL))", p.theirs);
  if (p.kind == Kind::kDecimal && p.scale > 0) {
    d.theirs = fmt::format("({} / {}.0)", p.theirs, Power10Text(p.scale));
    d.bound = p.bound / Power10(p.scale);
    d.bits = -1;
  }
  if (d.bound >= kExact) d.bits = -1;
  return d;
}

Piece QueryGenerator::Rescaled(const Piece& p, int scale) const {
  Piece out = p;
  const int up = scale - ScaleOf(p);
  out.precision = std::min(38, PrecisionOf(p) + up);
  out.kind = Kind::kDecimal;
  out.scale = scale;
  if (up > 0) {
    out.theirs = fmt::format("({} * {})", p.theirs, Power10Text(up));
    out.bound *= Power10(up);
  }
  return out;
}

void QueryGenerator::Align(Piece* a, Piece* b) const {
  if (a->kind == Kind::kDouble || b->kind == Kind::kDouble) {
    *a = ToDouble(*a);
    *b = ToDouble(*b);
  } else if (a->kind == Kind::kDecimal || b->kind == Kind::kDecimal) {
    const int scale = std::max(ScaleOf(*a), ScaleOf(*b));
    *a = Rescaled(*a, scale);
    *b = Rescaled(*b, scale);
  }
}

Piece QueryGenerator::Arithmetic(Piece a, Piece b, char op) {
  const char ops[] = {'+', '-', '*', '/', '%', '+', '-', '*'};
  if (op == 0) op = ops[Below(std::size(ops))];
  Piece r;
  const bool ints = a.kind == Kind::kInt && b.kind == Kind::kInt;
  bool doubles = a.kind == Kind::kDouble || b.kind == Kind::kDouble;
  if (doubles && op == '%') op = '+';
  if (op == '/' && !ints) doubles = true;
  // Integers beyond 2^52 round on their way to double, in SQLite elsewhere than here.
  if (doubles && (a.bound >= kExact || b.bound >= kExact)) return a;
  const std::string ours_a = a.single && b.single ? "CAST(" + a.ours + " AS DOUBLE PRECISION)" : a.ours,
                    ours_b = b.ours;
  if (doubles) {
    a = ToDouble(a);
    b = ToDouble(b);
    r.kind = Kind::kDouble;
    switch (op) {
      case '*':
        r.bound = a.bound * b.bound;
        r.bits = a.bits < 0 || b.bits < 0 ? -1 : a.bits + b.bits;
        break;
      case '/':
        r.bound = a.bound * 1e6;
        r.bits = -1;
        break;
      default:
        r.bound = a.bound + b.bound;
        r.bits = a.bits < 0 || b.bits < 0 ? -1 : std::max(a.bits, b.bits);
        break;
    }
    if (r.bits > 20 || r.bound * std::exp2(std::max(r.bits, 0)) >= kExact) r.bits = -1;
    if (r.bound > 1e100) return a.single ? b : a;
  } else if (ints) {
    r.kind = Kind::kInt;
    r.width = std::max(a.width, b.width);
    r.bound = op == '*'   ? a.bound * b.bound
              : op == '/' ? a.bound
              : op == '%' ? std::min(a.bound, b.bound)
                          : a.bound + b.bound;
    if (std::max({r.bound, a.bound, b.bound}) > kLargest) return a;
    if (r.bound > LimitOf(r.width)) {
      r.width = 64;
      r.ours = fmt::format("({} {} {})", BigintCast(a), op, b.ours);
      r.theirs = fmt::format("({} {} {})", a.theirs, op, b.theirs);
      r.constant = a.constant && b.constant;
      return r;
    }
  } else {
    r.kind = Kind::kDecimal;
    const int whole_a = PrecisionOf(a) - ScaleOf(a), whole_b = PrecisionOf(b) - ScaleOf(b);
    if (op == '*') {
      r.scale = ScaleOf(a) + ScaleOf(b);
      r.precision = std::min(38, PrecisionOf(a) + PrecisionOf(b));
      r.bound = a.bound * b.bound;
    } else {
      const int scale = std::max(ScaleOf(a), ScaleOf(b));
      r.precision = std::min(
          38, op == '%' ? std::max(1, std::min(whole_a, whole_b) + scale) : std::max(whole_a, whole_b) + scale + 1);
      Align(&a, &b);
      r.scale = a.scale;
      r.bound = op == '%' ? std::min(a.bound, b.bound) : a.bound + b.bound;
    }
    if (std::max({r.bound, a.bound, b.bound}) > kLargest || r.scale > 15) return Constant(Kind::kDecimal);
  }
  r.constant = a.constant && b.constant;
  r.ours = op == '%' && Chance(20) ? fmt::format("mod({}, {})", ours_a, ours_b)
                                   : fmt::format("({} {} {})", ours_a, op, ours_b);
  r.theirs = fmt::format("({} {} {})", a.theirs, op, b.theirs);
  return r;
}

Piece QueryGenerator::MakeInt(int depth) {
  if (depth <= 0) return LeafOrConstant(Kind::kInt);
  switch (Below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: {
      const Piece a = MakeInt(depth - 1);
      return Arithmetic(a, Chance(50) ? Constant(Kind::kInt) : MakeInt(depth - 1));
    }
    case 5:
    case 6: {
      const Piece a = MakeInt(depth - 1);
      return a.bound > kLargest ? a : Both(Kind::kInt, Chance(50) ? "(- {})" : "abs({})", a);
    }
    case 7:
    case 8:
      return Conditional(Kind::kInt, depth);
    case 9: {
      Piece p = Both(Kind::kInt, "length({})", MakeText(depth - 1));
      p.width = 32;
      p.bound = 1000;
      return p;
    }
    case 10: {
      struct Field {
        const char *ours, *format;
        double bound;
      };
      static constexpr Field kFields[] = {
          {"YEAR", "CAST(strftime('%Y', {}) AS INTEGER)", 10000},
          {"MONTH", "CAST(strftime('%m', {}) AS INTEGER)", 12},
          {"DAY", "CAST(strftime('%d', {}) AS INTEGER)", 31},
          {"DOY", "CAST(strftime('%j', {}) AS INTEGER)", 366},
          {"DOW", "CAST(strftime('%w', {}) AS INTEGER)", 6},
          {"ISODOW", "((CAST(strftime('%w', {}) AS INTEGER) + 6) % 7 + 1)", 7},
          {"QUARTER", "((CAST(strftime('%m', {}) AS INTEGER) + 2) / 3)", 4},
          {"EPOCH", "CAST(strftime('%s', {}) AS INTEGER)", 1e12},
          {"HOUR", "CAST(strftime('%H', {}) AS INTEGER)", 23},
          {"MINUTE", "CAST(strftime('%M', {}) AS INTEGER)", 59},
      };
      const Piece x = Chance(70) ? MakeDate(depth - 1) : MakeTimestamp(depth - 1);
      const Field& f = kFields[Below(x.kind == Kind::kDate ? 8 : std::size(kFields))];
      const std::string field = fmt::format("EXTRACT({} FROM {})", f.ours, x.ours);
      // (The epoch has a fraction.)
      Piece p = Of(Kind::kInt, f.ours == std::string_view("EPOCH") ? "CAST(" + field + " AS BIGINT)" : field,
                   fmt::format(fmt::runtime(f.format), x.theirs));
      p.width = 64;
      p.bound = f.bound;
      p.constant = x.constant;
      return p;
    }
    case 11: {
      const Piece a = MakeDate(depth - 1), b = MakeDate(depth - 1);
      Piece p = Of(Kind::kInt, fmt::format("({} - {})", a.ours, b.ours),
                   fmt::format("CAST(julianday({}) - julianday({}) AS INTEGER)", a.theirs, b.theirs));
      p.bound = 4e6;
      p.constant = a.constant && b.constant;
      return p;
    }
    case 12: {
      const Piece d = MakeDouble(depth - 1);
      if (d.bound > LimitOf(32)) return LeafOrConstant(Kind::kInt);
      Piece p = Of(Kind::kInt, fmt::format("CAST({} AS INTEGER)", d.ours),
                   fmt::format("CAST(rint({}) AS INTEGER)", d.theirs));
      p.bound = d.bound + 1;
      p.constant = d.constant;
      return p;
    }
    case 13: {
      const Piece d = MakeDecimal(depth - 1);
      Piece p = Of(Kind::kInt, fmt::format("CAST({} AS BIGINT)", d.ours),
                   d.scale == 0 ? d.theirs : fmt::format("half_away({}, {})", d.theirs, Power10Text(d.scale)));
      p.width = 64;
      p.bound = d.bound / Power10(d.scale) + 1;
      p.constant = d.constant;
      return p;
    }
    case 14: {
      Piece p = Of(Kind::kInt, "", "");
      const Piece b = Predicate(depth - 1);
      p.ours = fmt::format("CAST({} AS INTEGER)", b.ours);
      p.theirs = "likely(" + b.theirs + ")";
      p.bound = 1;
      p.constant = b.constant;
      return p;
    }
    default: {
      const Leaf* code = nullptr;
      for (const Leaf& l : leaves_) {
        if (l.column != nullptr && l.column->name == "code") code = &l;
      }
      if (code == nullptr) return LeafOrConstant(Kind::kInt);
      Piece p = Both(Kind::kInt, "CAST({} AS INTEGER)", code->piece);
      p.width = 32;
      p.bound = 9999;
      return p;
    }
  }
}

Piece QueryGenerator::MakeDecimal(int depth) {
  if (depth <= 0) return LeafOrConstant(Kind::kDecimal);
  switch (Below(10)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const Piece a = MakeDecimal(depth - 1);
      const Piece r = Arithmetic(a, Chance(40) ? MakeInt(depth - 1) : MakeDecimal(depth - 1));
      return r.kind == Kind::kDecimal ? r : a;  // a quotient is a double
    }
    case 4:
      return Conditional(Kind::kDecimal, depth);
    case 5:
      return Both(Kind::kDecimal, Chance(50) ? "abs({})" : "(- {})", MakeDecimal(depth - 1));
    case 6: {
      const Piece a = MakeDecimal(depth - 1);
      const int digits = Between(0, 3);
      Piece p = a;
      p.ours =
          digits == 0 && Chance(50) ? fmt::format("round({})", a.ours) : fmt::format("round({}, {})", a.ours, digits);
      if (digits >= a.scale) return p;
      p.theirs = fmt::format("half_away({}, {})", a.theirs, Power10Text(a.scale - digits));
      p.precision = std::min(38, a.precision - a.scale + 1 + digits);
      p.scale = digits;
      p.bound = a.bound / Power10(a.scale - digits) + 1;
      return p;
    }
    case 7: {
      const Piece a = MakeDecimal(depth - 1);
      Piece p = a;
      const bool floor = Chance(50);
      p.ours = fmt::format("{}({})", floor ? "floor" : "ceil", a.ours);
      const std::string unit = Power10Text(a.scale);
      p.theirs = a.scale == 0 ? a.theirs
                              : fmt::format(fmt::runtime(floor ? "floor_div({}, {})" : "(- floor_div(- {}, {}))"),
                                            a.theirs, unit);
      p.precision = std::min(38, a.precision - a.scale + 1);
      p.scale = 0;
      p.bound = a.bound / Power10(a.scale) + 1;
      return p;
    }
    case 8: {
      const Piece a = MakeInt(depth - 1);
      const int scale = Between(0, 3);
      if (a.bound * Power10(scale) > 9e14) return LeafOrConstant(Kind::kDecimal);
      Piece p = Rescaled(a, scale);
      p.precision = Chance(50) ? 18 : 30;
      p.ours = fmt::format("CAST({} AS DECIMAL({},{}))", a.ours, p.precision, scale);
      return p;
    }
    default: {
      const Piece a = MakeDecimal(depth - 1);
      const int scale = Between(0, 4);
      if (a.bound * Power10(std::max(0, scale - a.scale)) > 9e14) return a;
      Piece p = scale >= a.scale ? Rescaled(a, scale) : a;
      if (scale < a.scale) {
        p.theirs = fmt::format("half_away({}, {})", a.theirs, Power10Text(a.scale - scale));
        p.scale = scale;
        p.bound = a.bound / Power10(a.scale - scale) + 1;
      }
      p.precision = Chance(50) ? 18 : 28;
      p.ours = fmt::format("CAST({} AS DECIMAL({},{}))", a.ours, p.precision, scale);
      return p;
    }
  }
}

Piece QueryGenerator::MakeDouble(int depth) {
  if (depth <= 0) return LeafOrConstant(Kind::kDouble);
  switch (Below(8)) {
    case 0:
    case 1:
    case 2: {
      Piece a = MakeDouble(depth - 1), b = Make(NumberKind(), depth - 1);
      if (Chance(30)) std::swap(a, b);
      const Piece r = Arithmetic(a, b);
      return r.kind == Kind::kDouble ? r : LeafOrConstant(Kind::kDouble);
    }
    case 3: {
      const Piece a = MakeDecimal(depth - 1);
      const Piece r = Arithmetic(a, Make(Chance(50) ? Kind::kInt : Kind::kDecimal, depth - 1), '/');
      return r.kind == Kind::kDouble ? r : LeafOrConstant(Kind::kDouble);
    }
    case 4:
      return Conditional(Kind::kDouble, depth);
    case 5:
      return Both(Kind::kDouble, Chance(50) ? "abs({})" : "(- {})", MakeDouble(depth - 1));
    case 6: {
      const Piece a = MakeDouble(depth - 1);
      if (a.bound >= kExact) return a;
      const char* const ours[] = {"round", "floor", "ceil"};
      const char* const theirs[] = {"rint", "float_floor", "float_ceil"};
      const size_t i = Below(3);
      Piece p = a;
      p.ours = fmt::format("{}({})", ours[i], a.ours);
      p.theirs = fmt::format("{}({})", theirs[i], a.theirs);
      p.bits = 0;
      p.bound += 1;
      p.single = false;
      return p;
    }
    default: {
      const Piece a = Make(Chance(50) ? Kind::kInt : Kind::kDecimal, depth - 1);
      if (a.bound >= kExact) return LeafOrConstant(Kind::kDouble);
      Piece p = ToDouble(a);
      p.ours = fmt::format("CAST({} AS DOUBLE PRECISION)", a.ours);
      return p;
    }
  }
}

// ---- Text, dates

Piece QueryGenerator::MakeText(int depth) {
  if (depth <= 0) return LeafOrConstant(Kind::kText);
  switch (Below(9)) {
    case 0:
    case 1: {
      const Piece a = MakeText(depth - 1);
      if (Chance(25)) return Both(Kind::kText, "({} || {})", a, MakeInt(depth - 1));
      return Both(Kind::kText, "({} || {})", a, MakeText(depth - 1));
    }
    case 2:
      return Cased(Chance(50), MakeText(depth - 1));
    case 3: {
      const char* const functions[] = {"trim({})", "ltrim({})", "rtrim({})"};
      return Both(Kind::kText, functions[Below(3)], MakeText(depth - 1));
    }
    case 4:
    case 5: {
      const Piece a = MakeText(depth - 1);
      const int from = Between(1, 6), length = Between(0, 5);
      Piece p = a;
      if (Chance(25)) {
        p.ours = fmt::format("substring({} FROM {})", a.ours, from);
        p.theirs = fmt::format("substr({}, {})", a.theirs, from);
      } else {
        p.ours = Chance(50) ? fmt::format("substring({} FROM {} FOR {})", a.ours, from, length)
                            : fmt::format("substr({}, {}, {})", a.ours, from, length);
        p.theirs = fmt::format("substr({}, {}, {})", a.theirs, from, length);
      }
      return p;
    }
    case 6:
      return Conditional(Kind::kText, depth);
    case 7:
      return Both(Kind::kText, "CAST({} AS TEXT)", Chance(60) ? MakeInt(depth - 1) : MakeDate(depth - 1));
    default: {
      const Piece a = MakeDecimal(depth - 1);
      Piece p = Of(Kind::kText, fmt::format("CAST({} AS TEXT)", a.ours),
                   fmt::format("decimal_text({}, {})", a.theirs, a.scale));
      p.constant = a.constant;
      return p;
    }
  }
}

Piece QueryGenerator::MakeDate(int depth) {
  if (depth <= 0) return LeafOrConstant(Kind::kDate);
  const Piece a = MakeDate(depth - 1);
  Piece p = a;
  switch (Below(5)) {
    case 0: {
      const Piece n = Chance(60) ? Constant(Kind::kInt) : LeafOrConstant(Kind::kInt);
      if (n.bound > 100000) return a;
      p.ours = fmt::format("({} + {})", a.ours, n.ours);
      p.theirs = fmt::format("date({}, {} || ' days')", a.theirs, n.theirs);
      p.constant = a.constant && n.constant;
      return p;
    }
    case 1: {
      const int n = Between(1, 30);
      const bool months = Chance(50), minus = Chance(50);
      p.ours = fmt::format("({} {} INTERVAL '{} {}')", a.ours, minus ? '-' : '+', n, months ? "months" : "days");
      p.theirs = months ? fmt::format("add_months({}, {})", a.theirs, minus ? -n : n)
                        : fmt::format("date({}, '{} days')", a.theirs, minus ? -n : n);
      return p;
    }
    case 2: {
      const Piece t = MakeTimestamp(depth - 1);
      p = Of(Kind::kDate, fmt::format("CAST({} AS DATE)", t.ours), fmt::format("date({})", t.theirs));
      p.constant = t.constant;
      return p;
    }
    case 3:
      return Conditional(Kind::kDate, depth);
    default:
      return a;
  }
}

Piece QueryGenerator::MakeTimestamp(int depth) {
  if (depth <= 0) return LeafOrConstant(Kind::kTimestamp);
  const Piece a = MakeTimestamp(depth - 1);
  Piece p = a;
  switch (Below(4)) {
    case 0: {
      const char* const units[] = {"hours", "minutes", "seconds", "days"};
      const char* unit = units[Below(4)];
      const int n = Between(-50, 50);
      p.ours = fmt::format("({} + INTERVAL '{} {}')", a.ours, n, unit);
      p.theirs = fmt::format("datetime({}, '{} {}')", a.theirs, n, unit);
      return p;
    }
    case 1: {
      const Piece d = MakeDate(depth - 1);
      p = Of(Kind::kTimestamp, fmt::format("CAST({} AS TIMESTAMP)", d.ours), fmt::format("datetime({})", d.theirs));
      p.constant = d.constant;
      return p;
    }
    case 2:
      return Conditional(Kind::kTimestamp, depth);
    default:
      return a;
  }
}

Piece QueryGenerator::MakeHuge(int depth) {
  if (depth <= 0 || Chance(60)) return LeafOrConstant(Kind::kHuge);
  return Conditional(Kind::kHuge, depth);
}

Piece QueryGenerator::Make(Kind kind, int depth) {
  switch (kind) {
    case Kind::kInt:
      return MakeInt(depth);
    case Kind::kDecimal:
      return MakeDecimal(depth);
    case Kind::kHuge:
      return MakeHuge(depth);
    case Kind::kDouble:
      return MakeDouble(depth);
    case Kind::kText:
      return MakeText(depth);
    case Kind::kDate:
      return MakeDate(depth);
    case Kind::kTimestamp:
      return MakeTimestamp(depth);
    case Kind::kBool:
      return Predicate(depth);
  }
  return {};
}

/// CASE, COALESCE, NULLIF. All branches are of one kind; decimals get one scale.
Piece QueryGenerator::Conditional(Kind kind, int depth) {
  std::vector<Piece> branches = {Make(kind, depth - 1), Chance(40) ? Constant(kind) : Make(kind, depth - 1)};
  Piece p = branches[0];
  if (kind == Kind::kDecimal) {
    if (!HaveCommonDecimal(branches[0], branches[1])) return branches[0];
    Align(&branches[0], &branches[1]);
    p.scale = branches[0].scale;
    p.precision = std::max(branches[0].precision, branches[1].precision);
    if (branches[0].bound > kLargest || branches[1].bound > kLargest) return Constant(kind);
  }
  p.single = branches[0].single && branches[1].single;
  p.bound = std::max(branches[0].bound, branches[1].bound);
  p.width = std::max(branches[0].width, branches[1].width);
  p.bits = branches[0].bits < 0 || branches[1].bits < 0 ? -1 : std::max(branches[0].bits, branches[1].bits);
  p.constant = false;
  const Piece &a = branches[0], &b = branches[1];
  switch (Below(6)) {
    case 0:
    case 1: {
      p.ours = fmt::format("coalesce({}, {})", a.ours, b.ours);
      p.theirs = fmt::format("coalesce({}, {})", a.theirs, b.theirs);
      return p;
    }
    case 2:
      if (kind != Kind::kBool && kind != Kind::kDecimal) {
        p = a;
        p.constant = false;
        p.ours = fmt::format("nullif({}, {})", a.ours, b.ours);
        p.theirs = fmt::format("nullif({}, {})", a.theirs, b.theirs);
        return p;
      }
      [[fallthrough]];
    case 3: {
      const Piece c = Predicate(depth - 1);
      p.ours = fmt::format("CASE WHEN {} THEN {} ELSE {} END", c.ours, a.ours, b.ours);
      p.theirs = fmt::format("CASE WHEN {} THEN {} ELSE {} END", c.theirs, a.theirs, b.theirs);
      return p;
    }
    case 4: {
      const Piece c = Predicate(depth - 1), e = Predicate(depth - 1);
      p.ours = fmt::format("CASE WHEN {} THEN {} WHEN {} THEN {} END", c.ours, a.ours, e.ours, b.ours);
      p.theirs = fmt::format("CASE WHEN {} THEN {} WHEN {} THEN {} END", c.theirs, a.theirs, e.theirs, b.theirs);
      return p;
    }
    default: {
      const Kind of = Chance(50) ? Kind::kInt : Kind::kText;
      const Leaf* leaf = FindLeaf(of);
      const Piece x = leaf != nullptr ? leaf->piece : Constant(of);
      const Piece v = ConstantLike(leaf, of), w = ConstantLike(leaf, of);
      p.ours = fmt::format("CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", x.ours, v.ours, a.ours, w.ours,
                           b.ours, a.ours);
      p.theirs = fmt::format("CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", x.theirs, v.theirs, a.theirs,
                             w.theirs, b.theirs, a.theirs);
      return p;
    }
  }
}

// ---- Predicates

Piece QueryGenerator::Compare(const std::string& op, const Piece& left, const Piece& right) {
  Piece a = left, b = right;
  const bool exact = a.kind != Kind::kDouble && b.kind != Kind::kDouble;
  if (exact && (a.kind == Kind::kDecimal || b.kind == Kind::kDecimal) && !HaveCommonDecimal(a, b))
    return BoolLiteral(true);
  Align(&a, &b);
  if (a.kind == Kind::kDecimal && std::max(a.bound, b.bound) > kLargest) return BoolLiteral(true);
  // Integers beyond 2^52 are compared as doubles here, exactly there.
  if (a.kind == Kind::kDouble && std::max(left.bound, right.bound) >= kExact) return BoolLiteral(true);
  const bool huge_order = a.kind == Kind::kHuge && (op[0] == '<' || op[0] == '>') && op != "<>";
  Piece p = Of(Kind::kBool, fmt::format("({} {} {})", left.ours, op, right.ours),
               huge_order ? fmt::format("(decimal_compare({}, {}) {} 0)", a.theirs, b.theirs, op)
                          : fmt::format("({} {} {})", a.theirs, op, b.theirs));
  p.constant = a.constant && b.constant;
  return p;
}

Piece QueryGenerator::Comparison(int depth) {
  const char* const ops[] = {"=", "<>", "<", "<=", ">", ">=", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"};
  const std::string op = ops[Below(std::size(ops))];
  const Kind kind = AnyKind();
  const Leaf* leaf = FindLeaf(kind);
  const bool number = kind == Kind::kInt || kind == Kind::kDecimal || kind == Kind::kDouble;
  if (leaf != nullptr && Chance(55)) {
    // A bare column and a constant, of another class of numbers now and then.
    const Piece constant = number && Chance(20) ? Constant(NumberKind()) : ConstantLike(leaf, kind);
    return Chance(85) ? Compare(op, leaf->piece, constant) : Compare(op, constant, leaf->piece);
  }
  const Piece a = Make(kind, depth);
  const Piece b = number && Chance(30) ? Make(NumberKind(), depth)
                  : Chance(50)         ? ConstantLike(leaf, kind)
                                       : Make(kind, depth - 1);
  return Compare(op, a, b);
}

Piece QueryGenerator::Like(int depth) {
  const Leaf* leaf = FindLeaf(Kind::kText);
  const Piece x = leaf != nullptr && Chance(70) ? leaf->piece : MakeText(depth - 1);
  std::string text = ConstantLike(leaf, Kind::kText).theirs;
  text = text.substr(1, text.size() - 2);
  // Cut at characters, double quotes ('') whole.
  std::vector<std::string> characters;
  for (size_t i = 0; i < text.size();) {
    size_t n = 1;
    while (i + n < text.size() && (static_cast<unsigned char>(text[i + n]) & 0xC0) == 0x80) ++n;
    if (text[i] == '\'') n = 2;
    characters.push_back(text.substr(i, n));
    i += n;
  }
  std::string pattern;
  const size_t from = Chance(50) ? 0 : Below(characters.size() + 1);
  const size_t to = Chance(40) ? characters.size() : from + Below(characters.size() - from + 1);
  if (from > 0) pattern += '%';
  for (size_t i = from; i < to; ++i) {
    const std::string& c = characters[i];
    if (Chance(12)) {
      pattern += '_';
    } else if (Chance(6)) {
      pattern += '%';
    } else {
      if (c == "%" || c == "_" || c == "\\") {
        if (c == "\\" || Chance(60)) pattern += '\\';
      }
      pattern += c;
    }
  }
  if (to < characters.size() || Chance(15)) pattern += '%';
  const bool escape = pattern.find('\\') != std::string::npos;
  const char* op = Chance(75) ? "LIKE" : "NOT LIKE";
  Piece p = Of(Kind::kBool, fmt::format("({} {} '{}')", x.ours, op, pattern),
               fmt::format("({} {} '{}'{})", x.theirs, op, pattern, escape ? " ESCAPE '\\'" : ""));
  p.constant = x.constant;
  return p;
}

Piece QueryGenerator::In(int depth) {
  const Kind kind = AnyKind();
  const Leaf* leaf = FindLeaf(kind);
  const Piece x = leaf != nullptr && Chance(75) ? leaf->piece : Make(kind, depth - 1);
  const int n = Chance(80) ? Between(1, 6) : Between(7, 40);
  std::string ours, theirs;
  for (int i = 0; i < n; ++i) {
    Piece v = ConstantLike(leaf, kind);
    if (kind == Kind::kDecimal) {
      // One scale on SQLite's side; what x cannot hold is never equal.
      if (v.scale > x.scale) v = DecimalLiteral(Between(0, 50), 0);
      v = Rescaled(v, x.scale);
    }
    ours += (i == 0 ? "" : ", ") + v.ours;
    theirs += (i == 0 ? "" : ", ") + v.theirs;
  }
  if (Chance(6)) {
    ours += ", NULL";
    theirs += ", NULL";
  }
  const char* op = Chance(70) ? "IN" : "NOT IN";
  Piece p =
      Of(Kind::kBool, fmt::format("({} {} ({}))", x.ours, op, ours), fmt::format("({} {} ({}))", x.theirs, op, theirs));
  p.constant = x.constant;
  return p;
}

Piece QueryGenerator::Predicate(int depth) {
  if (depth <= 0) {
    if (Chance(15)) return LeafOrConstant(Kind::kBool);
    return Comparison(0);
  }
  switch (Below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return Comparison(depth - 1);
    case 6:
    case 7:
      return Both(Kind::kBool, "({} AND {})", Predicate(depth - 1), Predicate(depth - 1));
    case 8:
    case 9:
    case 10:
      return Both(Kind::kBool, "({} OR {})", Predicate(depth - 1), Predicate(depth - 1));
    case 11:
      return Both(Kind::kBool, "(NOT {})", Predicate(depth - 1));
    case 12: {
      const Kind kind = AnyKind();
      const Leaf* leaf = FindLeaf(kind);
      const Piece x = leaf != nullptr && Chance(80) ? leaf->piece : Make(kind, depth - 1);
      const Piece low = ConstantLike(leaf, kind), high = ConstantLike(leaf, kind);
      const bool negated = Chance(30);
      const Piece from = Compare(">=", x, low), to = Compare("<=", x, high);
      Piece p =
          Of(Kind::kBool, fmt::format("({} {}BETWEEN {} AND {})", x.ours, negated ? "NOT " : "", low.ours, high.ours),
             fmt::format("({}({} AND {}))", negated ? "NOT " : "", from.theirs, to.theirs));
      if (from.ours == "true" || to.ours == "true") return from;
      p.constant = x.constant;
      return p;
    }
    case 13:
    case 14:
      return In(depth);
    case 15:
    case 16:
      return Like(depth);
    case 17: {
      const Kind kind = AnyKind();
      return Both(Kind::kBool, Chance(40) ? "({} IS NULL)" : "({} IS NOT NULL)",
                  Make(kind, Chance(60) ? 0 : depth - 1));
    }
    case 18: {
      static constexpr const char* kTests[] = {"({} IS TRUE)", "({} IS NOT TRUE)", "({} IS FALSE)",
                                               "({} IS NOT FALSE)"};
      return Both(Kind::kBool, kTests[Below(4)], Predicate(depth - 1));
    }
    default:
      return Conditional(Kind::kBool, depth);
  }
}

// ---- FROM

std::string QueryGenerator::ColumnText(const Relation& relation, const WorldColumn& column) const {
  return relations_.size() == 1 ? column.name : relation.alias + "." + column.name;
}

Piece QueryGenerator::ColumnPiece(size_t relation, const WorldColumn& column) const {
  Piece p = column.form;
  p.ours = p.theirs = ColumnText(relations_[relation], column);
  return p;
}

/// Joins relation `r` with one of those before it: by a domain they share, sometimes by an expression or two domains.
void QueryGenerator::AddJoin(size_t r) {
  std::vector<std::pair<Piece, Piece>> pairs;
  const WorldTable& right = *relations_[r].table;
  for (size_t l = 0; l < r; ++l) {
    for (const WorldColumn& a : relations_[l].table->columns) {
      for (const WorldColumn& b : right.columns) {
        if (!a.domain.empty() && a.domain == b.domain) pairs.emplace_back(ColumnPiece(l, a), ColumnPiece(r, b));
      }
    }
  }
  if (pairs.empty()) return;
  // Prefer the primary key: it keeps the number of rows.
  std::vector<size_t> preferred;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!right.primary_key.empty() && pairs[i].second.ours == relations_[r].alias + "." + right.primary_key)
      preferred.push_back(i);
  }
  size_t at = Below(pairs.size());
  if (!preferred.empty() && Chance(75)) at = preferred[Below(preferred.size())];
  auto [a, b] = pairs[at];
  if (a.kind == Kind::kInt && a.bound < 1e6 && Chance(12)) a = Arithmetic(a, Integer(Between(1, 3)));
  if (a.kind == Kind::kText && Chance(15)) {
    a = Both(Kind::kText, "lower({})", a);
    b = Both(Kind::kText, "lower({})", b);
  }
  const Piece key = Compare("=", a, b);
  conjuncts_ours_.push_back(key.ours);
  conjuncts_theirs_.push_back(key.theirs);
  if (Chance(15)) {
    auto [c, d] = pairs[Below(pairs.size())];
    const Piece second = Compare(Chance(60) ? "=" : Chance(50) ? "<=" : "<>", c, d);
    conjuncts_ours_.push_back(second.ours);
    conjuncts_theirs_.push_back(second.theirs);
  }
}

void QueryGenerator::MakeFrom() {
  relations_.clear();
  conjuncts_ours_.clear();
  conjuncts_theirs_.clear();
  leaves_.clear();
  const uint64_t dice = Below(100);
  const size_t count = dice < 45 ? 1 : dice < 70 ? 2 : dice < 85 ? 3 : dice < 95 ? 4 : 5;
  for (size_t i = 0; i < count; ++i) {
    // facts, dims, events, small, steady, vacant: large ones first, so that the rest look things up.
    static constexpr int kFirst[] = {0, 0, 0, 0, 0, 0, 2, 2, 1, 4};
    static constexpr int kOthers[] = {1, 1, 1, 1, 3, 3, 3, 2, 4, 0};
    int table = i == 0 ? kFirst[Below(10)] : kOthers[Below(10)];
    if (i > 1 && table != 1) table = 3;
    if (Chance(1)) table = 5;
    relations_.push_back({&world_.tables[static_cast<size_t>(table)], std::string(1, static_cast<char>('a' + i))});
  }
  from_ours_.clear();
  const bool commas = Chance(50);
  std::vector<std::string> where_ours, where_theirs;
  for (size_t r = 0; r < count; ++r) {
    const std::string item =
        relations_[r].table->name + (count > 1 ? (Chance(50) ? " AS " : " ") + relations_[r].alias : "");
    if (r == 0) {
      from_ours_ = from_theirs_ = item;
      continue;
    }
    conjuncts_ours_.clear();
    conjuncts_theirs_.clear();
    // Products with small tables only.
    const bool product = relations_[r].table->rows < 10 && relations_[0].table->rows < 400 && r < 3 && Chance(15);
    if (!product) AddJoin(r);
    if (commas || conjuncts_ours_.empty()) {
      // Not a comma among JOINs: the ON of a later JOIN does not reach what stands before a comma.
      const char* separator = commas ? ", " : " CROSS JOIN ";
      from_ours_ += separator + item;
      from_theirs_ += separator + item;
      where_ours.insert(where_ours.end(), conjuncts_ours_.begin(), conjuncts_ours_.end());
      where_theirs.insert(where_theirs.end(), conjuncts_theirs_.begin(), conjuncts_theirs_.end());
      continue;
    }
    std::string on_ours, on_theirs;
    for (size_t i = 0; i < conjuncts_ours_.size(); ++i) {
      on_ours += (i == 0 ? "" : " AND ") + conjuncts_ours_[i];
      on_theirs += (i == 0 ? "" : " AND ") + conjuncts_theirs_[i];
    }
    from_ours_ += " JOIN " + item + " ON " + on_ours;
    from_theirs_ += " JOIN " + item + " ON " + on_theirs;
  }
  conjuncts_ours_ = std::move(where_ours);
  conjuncts_theirs_ = std::move(where_theirs);
  for (size_t r = 0; r < count; ++r) {
    for (const WorldColumn& c : relations_[r].table->columns) leaves_.push_back({ColumnPiece(r, c), &c});
  }
}

std::string QueryGenerator::Where(std::string* theirs) {
  const uint64_t dice = Below(100);
  const int count = dice < 30 ? 0 : dice < 70 ? 1 : dice < 90 ? 2 : 3;
  for (int i = 0; i < count; ++i) {
    const Piece p = Predicate(Between(1, 3));
    conjuncts_ours_.push_back(p.ours);
    conjuncts_theirs_.push_back(p.theirs);
  }
  std::string ours;
  theirs->clear();
  for (size_t i = 0; i < conjuncts_ours_.size(); ++i) {
    ours += (i == 0 ? " WHERE " : " AND ") + conjuncts_ours_[i];
    *theirs += (i == 0 ? " WHERE " : " AND ") + conjuncts_theirs_[i];
  }
  return ours;
}

// ---- Whole queries

/// ORDER BY and LIMIT. With a LIMIT all outputs are keys, so that equal rows only are left to chance.
void QueryGenerator::AddOrder(DifferentialQuery* q, bool distinct, std::string* ours, std::string* theirs) {
  std::string keys_ours, keys_theirs;
  auto add = [&](const std::string& a, const std::string& b) {
    const bool descending = Chance(40);
    const bool written = Chance(30), first = written ? Chance(50) : descending;
    const std::string comma = keys_ours.empty() ? "" : ", ";
    const char* direction = descending ? " DESC" : Chance(10) ? " ASC" : "";
    keys_ours += comma + a + direction + (written ? first ? " NULLS FIRST" : " NULLS LAST" : "");
    keys_theirs += comma + b + direction + (first ? " NULLS FIRST" : " NULLS LAST");
  };
  auto add_output = [&](size_t i) {
    const Piece& p = q->outputs[i];
    const uint64_t how = Below(distinct ? 2 : 3);
    const std::string name = fmt::format("c{}", i);
    if (how == 2 && !p.constant) {
      add(p.ours, OrderKey(p, p.theirs));
    } else {
      add(how == 0 ? std::to_string(i + 1) : name, OrderKey(p, name));
    }
  };
  const bool limit = Chance(40);
  if (Chance(limit ? 85 : 55)) {
    const bool hidden = !distinct && Chance(25);
    if (hidden) {
      const Piece p = Make(AnyKind(), 1);
      if (!p.constant) add(p.ours, OrderKey(p, p.theirs));
    }
    if (limit || hidden) {
      std::vector<size_t> all(q->outputs.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      for (size_t i = 0; i + 1 < all.size(); ++i) std::swap(all[i], all[i + Below(all.size() - i)]);
      for (size_t i : all) add_output(i);
      q->ordered = true;
    } else {
      const int n = Between(1, 3);
      for (int i = 0; i < n; ++i) {
        const size_t output = Below(q->outputs.size());
        add_output(output);
        q->order_keys.push_back(output);
      }
    }
    *ours += " ORDER BY " + keys_ours;
    *theirs += " ORDER BY " + keys_theirs;
  }
  if (!limit) return;
  const int n = Chance(80) ? Between(1, 20) : Between(0, 400);
  if (!q->ordered) {
    q->limit = n;
    *ours += fmt::format(" LIMIT {}", n);
    return;
  }
  const int offset = Chance(35) ? Between(0, 15) : 0;
  if (offset > 0 && Chance(25)) {
    *ours += fmt::format(" OFFSET {}", offset);
    *theirs += fmt::format(" LIMIT -1 OFFSET {}", offset);
  } else {
    const std::string text = fmt::format(" LIMIT {}", n) + (offset > 0 ? fmt::format(" OFFSET {}", offset) : "");
    *ours += text;
    *theirs += text;
  }
}

DifferentialQuery QueryGenerator::Plain() {
  DifferentialQuery q;
  const bool distinct = q.distinct = Chance(20);
  q.shape = distinct ? "distinct" : relations_.size() > 1 ? "join" : "scan";
  std::string list_ours, list_theirs;
  const bool star = !distinct && Chance(4);
  const int n = star ? 0 : distinct ? Between(1, 3) : Between(1, 5);
  if (star) {
    for (const Leaf& l : leaves_) q.outputs.push_back(l.piece);
    list_ours = list_theirs = "*";
  }
  for (int i = 0; i < n; ++i) {
    q.outputs.push_back(Make(AnyKind(), Chance(35) ? 0 : Between(1, distinct ? 2 : 3)));
    list_ours += fmt::format("{}{} AS c{}", i == 0 ? "" : ", ", q.outputs.back().ours, i);
    list_theirs += fmt::format("{}{} AS c{}", i == 0 ? "" : ", ", q.outputs.back().theirs, i);
  }
  std::string where_theirs;
  const std::string where_ours = Where(&where_theirs);
  const char* select = distinct ? "SELECT DISTINCT " : "SELECT ";
  q.ours = select + list_ours + " FROM " + from_ours_ + where_ours;
  q.theirs = select + list_theirs + " FROM " + from_theirs_ + where_theirs;
  if (!star) AddOrder(&q, distinct, &q.ours, &q.theirs);
  return q;
}

Piece QueryGenerator::Aggregate() {
  Piece p;
  std::string filter_ours, filter_theirs;
  if (Chance(8)) {
    const Piece f = Predicate(1);
    filter_ours = " FILTER (WHERE " + f.ours + ")";
    filter_theirs = " FILTER (WHERE " + f.theirs + ")";
  }
  const char* distinct = Chance(18) ? "DISTINCT " : "";
  auto call = [&](const char* function, const Piece& x, const std::string& theirs) {
    p.ours = fmt::format("{}({}{}){}", function, distinct, x.ours, filter_ours);
    p.theirs = fmt::format("{}({}{}){}", function, distinct, theirs, filter_theirs);
  };
  const int depth = Chance(50) ? 0 : Between(1, 2);
  switch (Below(10)) {
    case 0:
    case 1:
      p.ours = "count(*)" + filter_ours;
      p.theirs = "count(*)" + filter_theirs;
      p.width = 64;
      p.bound = kMostRows;
      return p;
    case 2: {
      const Piece x = Make(AnyKind(), depth);
      call("count", x, x.theirs);
      p.width = 64;
      p.bound = kMostRows;
      return p;
    }
    case 3:
    case 4:
    case 5: {
      const Piece x = Make(NumberKind(), depth);
      const bool sums = x.kind == Kind::kDouble ? x.bits >= 0 && x.bound * kMostRows * std::exp2(x.bits) < kExact
                                                : x.bound * kMostRows < kLargest;
      if (!sums) return Aggregate();
      p = x;
      p.constant = false;
      p.single = false;
      p.width = 64;
      p.bound = x.bound * kMostRows;
      p.precision = 38;
      call("sum", x, x.theirs);
      return p;
    }
    case 6: {
      const Piece x = Make(NumberKind(), depth);
      if (x.bound * kMostRows >= kExact ||
          (x.kind == Kind::kDouble && (x.bits < 0 || x.bound * kMostRows * std::exp2(x.bits) >= kExact))) {
        return Aggregate();
      }
      call("avg", x, x.theirs);
      if (x.kind == Kind::kDecimal) {
        p.theirs = fmt::format("((CAST(sum({0}{1}){2} AS REAL) / {3}.0) / count({0}{1}){2})", distinct, x.theirs,
                               filter_theirs, Power10Text(x.scale));
      }
      p.kind = Kind::kDouble;
      p.bits = -1;
      p.bound = std::max(1.0, x.bound);
      return p;
    }
    default: {
      const Piece x = Make(AnyKind(), depth);
      p = x;
      p.constant = false;
      const char* function = Chance(50) ? "min" : "max";
      call(function, x, x.theirs);
      if (x.kind == Kind::kHuge) p.theirs = fmt::format("decimal_{}({}){}", function, x.theirs, filter_theirs);
      return p;
    }
  }
}

DifferentialQuery QueryGenerator::Grouped() {
  DifferentialQuery q;
  const int keys = Chance(28) ? 0 : Between(1, 3);
  q.shape = keys == 0 ? "aggregate" : "group by";
  std::string where_theirs;
  const std::string where_ours = Where(&where_theirs);
  std::vector<Leaf> above;
  for (int i = 0; i < keys; ++i) {
    const Kind kind = AnyKind();
    Leaf leaf;
    if (Chance(65)) {
      const Leaf* found = FindLeaf(kind);
      if (found != nullptr) leaf = *found;
    }
    if (leaf.piece.ours.empty()) leaf.piece = Make(kind, Between(1, 2));
    // A constant key would be a position; parentheses do not change that.
    if (leaf.piece.constant) leaf = leaves_[Below(leaves_.size())];
    above.push_back(leaf);
  }
  const int aggregates = Between(keys == 0 ? 1 : 0, 4);
  std::vector<Piece> made;
  for (int i = 0; i < aggregates; ++i) made.push_back(Aggregate());

  // The select list: keys, aggregates, expressions over both.
  std::vector<Leaf> leaves_above = above;
  for (const Piece& p : made) leaves_above.push_back({p, nullptr});
  for (const Leaf& l : above) {
    if (Chance(85)) q.outputs.push_back(l.piece);
  }
  const std::vector<Leaf> below = std::exchange(leaves_, leaves_above);
  for (const Piece& p : made) {
    if (Chance(75) || above.empty()) {
      q.outputs.push_back(p);
    } else {
      q.outputs.push_back(Make(p.kind, 1));
    }
  }
  if (q.outputs.empty()) q.outputs.push_back(leaves_[0].piece);

  std::string having_ours, having_theirs;
  if (Chance(keys == 0 ? 5 : 25)) {
    const Piece p = Predicate(Between(1, 2));
    having_ours = " HAVING " + p.ours;
    having_theirs = " HAVING " + p.theirs;
    // SQLite wants an aggregate or a GROUP BY beside HAVING.
    if (keys == 0 && made.empty()) having_ours = having_theirs = "";
  }
  std::string list_ours, list_theirs;
  for (size_t i = 0; i < q.outputs.size(); ++i) {
    list_ours += fmt::format("{}{} AS c{}", i == 0 ? "" : ", ", q.outputs[i].ours, i);
    list_theirs += fmt::format("{}{} AS c{}", i == 0 ? "" : ", ", q.outputs[i].theirs, i);
  }
  std::string group_ours, group_theirs;
  for (size_t i = 0; i < above.size(); ++i) {
    const Piece& key = above[i].piece;
    std::string text = key.ours;
    for (size_t o = 0; o < q.outputs.size(); ++o) {
      if (q.outputs[o].ours == key.ours && Chance(25))
        text = Chance(50) ? std::to_string(o + 1) : fmt::format("c{}", o);
    }
    group_ours += (i == 0 ? " GROUP BY " : ", ") + text;
    group_theirs +=
        (i == 0 ? " GROUP BY " : ", ") + (key.kind == Kind::kBool ? "likely(" + key.theirs + ")" : key.theirs);
  }
  q.ours = "SELECT " + list_ours + " FROM " + from_ours_ + where_ours + group_ours + having_ours;
  q.theirs = "SELECT " + list_theirs + " FROM " + from_theirs_ + where_theirs + group_theirs + having_theirs;
  if (keys > 0) AddOrder(&q, false, &q.ours, &q.theirs);
  leaves_ = below;
  return q;
}

// ---- Set operations

QueryGenerator::Arm QueryGenerator::MakeArm(const std::vector<PieceKind>& kinds) {
  MakeFrom();
  Arm arm;
  for (const Kind kind : kinds) {
    const bool other = (kind == Kind::kDecimal || kind == Kind::kDouble) && Chance(25);
    Piece p = Make(other ? Kind::kInt : kind, Chance(60) ? 0 : Between(1, 2));
    // Rounded doubles may be equal in one system only.
    if (p.kind == Kind::kDouble && p.bits < 0) p = Integer(Between(0, 9));
    if (kind == Kind::kDouble && p.kind == Kind::kInt && p.bound >= kExact) p = Integer(Between(0, 9));
    arm.outputs.push_back(std::move(p));
  }
  arm.select = Chance(20) ? "SELECT DISTINCT " : "SELECT ";
  arm.from_theirs = " FROM " + from_theirs_;
  std::string where_theirs;
  arm.from_ours = " FROM " + from_ours_ + Where(&where_theirs);
  arm.from_theirs += where_theirs;
  return arm;
}

bool QueryGenerator::UniteColumn(size_t column, std::vector<Arm>* arms) const {
  Piece all = (*arms)[0].outputs[column];
  for (const Arm& a : *arms) {
    const Piece& p = a.outputs[column];
    if (p.kind == Kind::kDecimal || all.kind == Kind::kDecimal) {
      if (!HaveCommonDecimal(all, p)) return false;
      const int scale = std::max(ScaleOf(all), ScaleOf(p));
      all.precision = std::max(PrecisionOf(all) - ScaleOf(all), PrecisionOf(p) - ScaleOf(p)) + scale;
      all.scale = scale;
      all.kind = Kind::kDecimal;
    } else if (p.kind == Kind::kDouble) {
      all.kind = Kind::kDouble;
    }
  }
  for (Arm& a : *arms) {
    Piece& p = a.outputs[column];
    if (all.kind == Kind::kDecimal) p = Rescaled(p, all.scale);
    if (all.kind == Kind::kDouble) p = ToDouble(p);
    if (p.kind == Kind::kDecimal && p.bound > kLargest) return false;
    p.precision = all.precision;
  }
  return true;
}

QueryGenerator::Arm QueryGenerator::Combine(const std::string& op, char name, const Arm& left, const Arm& right) const {
  Arm both;
  for (size_t i = 0; i < left.outputs.size(); ++i) {
    const Piece &l = left.outputs[i], &r = right.outputs[i];
    Piece p = l;
    p.bound = std::max(l.bound, r.bound);
    p.width = std::max(l.width, r.width);
    p.bits = std::max(l.bits, r.bits);
    p.single = l.single && r.single;
    p.constant = false;
    both.outputs.push_back(std::move(p));
  }
  both.ours = left.ours + " " + op + " " + right.ours;
  if (op != "INTERSECT ALL" && op != "EXCEPT ALL") {
    both.theirs = fmt::format("SELECT * FROM ({}) {} SELECT * FROM ({})", left.theirs, op, right.theirs);
    return both;
  }
  std::string columns;
  for (size_t i = 0; i < left.outputs.size(); ++i) columns += fmt::format("{}{}{}", i == 0 ? "" : ", ", name, i);
  const std::string numbered = fmt::format("SELECT *, row_number() OVER (PARTITION BY {}) FROM ", columns);
  both.theirs = fmt::format("SELECT {} FROM ({}({}) {} {}({}))", columns, numbered, left.theirs,
                            op.substr(0, op.find(' ')), numbered, right.theirs);
  return both;
}

QueryGenerator::Arm QueryGenerator::SetOperation(char name) {
  // (Decimals to 38 digits are texts in SQLite.)
  static constexpr Kind kKinds[] = {Kind::kInt,  Kind::kInt,  Kind::kDecimal,   Kind::kDouble,
                                    Kind::kText, Kind::kDate, Kind::kTimestamp, Kind::kBool};
  std::vector<Kind> kinds;
  const int columns = Between(1, 3);
  for (int i = 0; i < columns; ++i) kinds.push_back(kKinds[Below(std::size(kKinds))]);
  std::vector<Arm> arms;
  const int count = Chance(60) ? 2 : Between(3, 4);
  for (int i = 0; i < count; ++i) arms.push_back(MakeArm(kinds));
  for (size_t c = 0; c < kinds.size(); ++c) {
    if (!UniteColumn(c, &arms)) return SetOperation(name);
  }
  for (Arm& a : arms) {
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      const Piece& p = a.outputs[i];
      a.ours += fmt::format("{}{} AS {}{}", i == 0 ? a.select : ", ", p.ours, name, i);
      a.theirs += fmt::format("{}{} AS {}{}", i == 0 ? a.select : ", ", p.theirs, name, i);
    }
    a.ours += a.from_ours;
    a.theirs += a.from_theirs;
  }
  static constexpr const char* kOps[] = {"UNION ALL", "UNION",         "UNION ALL", "UNION",
                                         "INTERSECT", "INTERSECT ALL", "EXCEPT",    "EXCEPT ALL"};
  std::vector<std::string> ops;
  for (size_t i = 1; i < arms.size(); ++i) ops.emplace_back(kOps[Below(std::size(kOps))]);
  const auto combine = [&](size_t i) {
    arms[i] = Combine(ops[i], name, arms[i], arms[i + 1]);
    arms.erase(arms.begin() + static_cast<ptrdiff_t>(i) + 1);
    ops.erase(ops.begin() + static_cast<ptrdiff_t>(i));
  };
  if (Chance(50)) {  // as the operators bind
    for (size_t i = 0; i < ops.size();) {
      if (ops[i].starts_with("INTERSECT")) {
        combine(i);
      } else {
        ++i;
      }
    }
    while (!ops.empty()) combine(0);
    return arms[0];
  }
  while (!ops.empty()) {
    const size_t at = Below(ops.size());
    for (Arm* a : {&arms[at], &arms[at + 1]}) a->ours = "(" + a->ours + ")";
    combine(at);
  }
  return arms[0];
}

/// A set operation as it is, or what else is generated over it as a derived table.
DifferentialQuery QueryGenerator::OfSetOperation() {
  const bool over = Chance(50);
  const Arm arm = SetOperation(over ? 'u' : 'c');  // (outputs over it are c0, c1, ...)
  if (!over) {
    DifferentialQuery q;
    q.shape = "set";
    q.outputs = arm.outputs;
    q.ours = arm.ours;
    q.theirs = "SELECT * FROM (" + arm.theirs + ")";
    AddOrder(&q, true, &q.ours, &q.theirs);
    return q;
  }
  MakeFrom();
  relations_.resize(1);
  from_ours_ = "(" + arm.ours + ") AS q";
  from_theirs_ = "(" + arm.theirs + ") AS q";
  conjuncts_ours_.clear();
  conjuncts_theirs_.clear();
  leaves_.clear();
  for (size_t i = 0; i < arm.outputs.size(); ++i) {
    Piece p = arm.outputs[i];
    p.ours = p.theirs = fmt::format("q.u{}", i);
    p.bound *= 4;  // a sum is over as many joins as there are arms
    leaves_.push_back({std::move(p), nullptr});
  }
  DifferentialQuery q = Chance(52) ? Plain() : Grouped();
  q.shape = "over set";
  return q;
}

// ---- Windows

bool QueryGenerator::WindowCall(const std::vector<Piece>& outputs, Piece* call, bool* numbers_peers) {
  const auto any = [&]() -> const Piece& { return outputs[Below(outputs.size())]; };
  const Piece x = any();
  std::string partition_ours, partition_theirs, order_ours, order_theirs;
  if (Chance(70)) {
    const Piece& key = any();
    partition_ours = "PARTITION BY " + key.ours + " ";
    partition_theirs = "PARTITION BY " + key.theirs + " ";
  }
  const auto add_key = [&](const Piece& key) {
    const bool descending = Chance(40), first = Chance(50);
    const std::string comma = order_ours.empty() ? "ORDER BY " : ", ";
    const char* direction = descending ? " DESC" : "";
    const char* nulls = first ? " NULLS FIRST" : " NULLS LAST";
    order_ours += comma + key.ours + direction + nulls;
    order_theirs += comma + OrderKey(key, key.theirs) + direction + nulls;
  };
  const bool total = Chance(65);
  std::vector<size_t> keys(outputs.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (size_t i = 0; i + 1 < keys.size(); ++i) std::swap(keys[i], keys[i + Below(keys.size() - i)]);
  const size_t partial = total ? keys.size() : Below(std::min<size_t>(keys.size(), 2) + 1);
  for (size_t i = 0; i < partial; ++i) add_key(outputs[keys[i]]);

  // The frame.
  std::string frame;
  bool by_rows = false;
  // (Beyond the ends of BIGINT it is an error in Tessera.)
  const bool one_number = partial == 1 && outputs[keys[0]].kind == Kind::kInt && outputs[keys[0]].bound < 1e15;
  const bool framed = Chance(60);
  if (framed) {
    const int mode = total ? static_cast<int>(Below(3)) : partial == 0 ? 1 : 1 + static_cast<int>(Below(2));
    by_rows = mode == 0;
    static constexpr const char* kModes[] = {"ROWS", "RANGE", "GROUPS"};
    const bool offsets = mode == 0 || (mode == 1 ? one_number : partial > 0);
    // Bounds from the first row of the partition to the last.
    const auto bound = [&](int at, int n) -> std::string {
      static constexpr const char* kBounds[] = {"UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING",
                                                "UNBOUNDED FOLLOWING"};
      return at % 2 == 1 ? fmt::format("{} {}", n, kBounds[at]) : kBounds[at];
    };
    const auto some = [&](int low, int high) {
      int at = Between(low, high);
      while (!offsets && at % 2 == 1) at = Between(low, high);
      return at;
    };
    const int start = some(0, 3), end = some(std::max(start, 1), 4);
    const int n = Between(0, 4);
    const int m = start != end ? Between(0, 4) : start == 1 ? Between(0, n) : Between(n, n + 3);
    frame = fmt::format(" {} BETWEEN {} AND {}", kModes[mode], bound(start, n), bound(end, m));
    static constexpr const char* kExclusions[] = {"", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"};
    frame += kExclusions[Chance(40) ? 1 + Below(3) : 0];
  }
  Piece p;
  p.width = 64;
  p.bound = kMostRows;
  bool takes_frame = true;
  std::string ours, theirs;
  const auto of_value = [&](const char* format) {
    p = x;
    p.constant = false;
    ours = fmt::format(fmt::runtime(format), x.ours);
    theirs = fmt::format(fmt::runtime(format), x.theirs);
  };
  switch (Below(total ? 15 : 9)) {
    case 0:
      ours = theirs = Chance(50) ? "rank()" : "dense_rank()";
      break;
    case 1:
      ours = theirs = Chance(50) ? "percent_rank()" : "cume_dist()";
      p.kind = Kind::kDouble;
      p.bits = -1;
      p.bound = 1;
      break;
    case 2:
      ours = theirs = "count(*)";
      break;
    case 3:
      of_value("count({})");
      p = Piece{};
      p.width = 64;
      p.bound = kMostRows;
      break;
    case 4:
    case 5: {
      const bool sums = x.kind == Kind::kDouble ? x.bits >= 0 && x.bound * kMostRows * std::exp2(x.bits) < kExact
                                                : x.bound * kMostRows < kLargest;
      if ((x.kind != Kind::kInt && x.kind != Kind::kDecimal && x.kind != Kind::kDouble) || !sums) return false;
      of_value("sum({})");
      p.single = false;
      p.width = 64;
      p.bound = x.bound * kMostRows;
      p.precision = 38;
      break;
    }
    case 6:
      if (x.kind != Kind::kInt || x.bound * kMostRows >= kExact) return false;
      of_value("avg({})");
      p.kind = Kind::kDouble;
      p.bits = -1;
      p.bound = std::max(1.0, x.bound);
      break;
    case 7:
    case 8:
      if (x.kind == Kind::kHuge) return false;
      of_value(Chance(50) ? "min({})" : "max({})");
      break;
    // From here on a row depends on the order of those beside it.
    case 9:
      ours = theirs = "row_number()";
      break;
    case 10:
      ours = theirs = fmt::format("ntile({})", Between(1, 9));
      p.width = 32;
      break;
    case 11:
    case 12:
      of_value(Chance(50) ? "lag({})" : "lead({}, 2)");
      break;
    case 13:
      of_value(Chance(50) ? "first_value({})" : "last_value({})");
      break;
    default:
      of_value("nth_value({}, 2)");
      break;
  }
  const bool ranks = ours.ends_with("rank()") || ours == "cume_dist()" || ours == "row_number()" ||
                     ours.starts_with("ntile") || ours.starts_with("lag") || ours.starts_with("lead");
  takes_frame = !ranks;
  *numbers_peers = takes_frame ? by_rows : !ours.ends_with("rank()") && ours != "cume_dist()";
  if (!takes_frame) frame.clear();
  // It tells rows apart. (SQLite's min and max over some frames do not look at it.)
  if (!total && takes_frame && Chance(20) && (ours.starts_with("count") || ours.starts_with("sum"))) {
    const Piece f = Predicate(1);
    ours += " FILTER (WHERE " + f.ours + ")";
    theirs += " FILTER (WHERE " + f.theirs + ")";
  }
  p.constant = false;
  p.ours = fmt::format("{} OVER ({}{}{})", ours, partition_ours, order_ours, frame);
  p.theirs = fmt::format("{} OVER ({}{}{})", theirs, partition_theirs, order_theirs, frame);
  *call = p;
  return true;
}

DifferentialQuery QueryGenerator::Windowed() {
  DifferentialQuery q;
  q.shape = "windows";
  const auto exact = [](const Piece& p) { return !p.constant && (p.kind != Kind::kDouble || p.bits >= 0); };
  const int n = Between(1, 4);
  for (int tries = 0; static_cast<int>(q.outputs.size()) < n && tries < 50; ++tries) {
    const Piece p = Make(AnyKind(), Chance(70) ? 0 : 1);
    if (exact(p)) q.outputs.push_back(p);
  }
  if (q.outputs.empty()) return Plain();
  const std::vector<Piece> below = q.outputs;
  const int calls = Between(1, 3);
  bool numbered = false;
  for (int tries = 0, made = 0; made < calls && tries < 50; ++tries) {
    Piece call;
    bool numbers_peers = false;
    // (Two of them may take rows that are equal in all outputs in different orders.)
    if (!WindowCall(below, &call, &numbers_peers) || (numbered && numbers_peers)) continue;
    numbered |= numbers_peers;
    q.outputs.push_back(call);
    ++made;
  }
  std::string list_ours, list_theirs, where_theirs;
  for (size_t i = 0; i < q.outputs.size(); ++i) {
    list_ours += fmt::format("{}{} AS c{}", i == 0 ? "" : ", ", q.outputs[i].ours, i);
    list_theirs += fmt::format("{}{} AS c{}", i == 0 ? "" : ", ", q.outputs[i].theirs, i);
  }
  const std::string where_ours = Where(&where_theirs);
  q.ours = "SELECT " + list_ours + " FROM " + from_ours_ + where_ours;
  q.theirs = "SELECT " + list_theirs + " FROM " + from_theirs_ + where_theirs;
  if (Chance(40)) {
    // A filter around it, which may pass the windows.
    const size_t i = Below(q.outputs.size());
    const bool small = q.outputs[i].kind == Kind::kInt;
    const std::string filter = small && Chance(70) ? fmt::format("c{} {} {}", i, Chance(50) ? "<=" : "=", Between(0, 6))
                                                   : fmt::format("c{} IS {}NULL", i, Chance(60) ? "NOT " : "");
    q.ours = "SELECT * FROM (" + q.ours + ") AS w WHERE " + filter;
    q.theirs = "SELECT * FROM (" + q.theirs + ") AS w WHERE " + filter;
    return q;
  }
  // By the outputs alone: rows that are equal in those below may have the windows' values in any order.
  AddOrder(&q, true, &q.ours, &q.theirs);
  return q;
}

// ---- WITH RECURSIVE

DifferentialQuery QueryGenerator::Recursive() {
  DifferentialQuery q;
  q.shape = "recursive";
  const bool all = Chance(50), joins = Chance(40), from_table = Chance(50);
  const int depth = joins ? Between(1, 3) : Between(1, 12), modulus = Between(2, 40);
  std::string first = fmt::format("SELECT 0, {}", Between(0, 50));
  if (from_table) first = fmt::format("SELECT 0, CAST(id AS {{}}) FROM dims WHERE id < {}", Between(0, 8));
  std::string step = fmt::format("SELECT r.n + 1, (r.v * {} + r.n + {}) % {} FROM r", Between(0, 5),
                                 joins ? "s.g" : std::to_string(Between(0, 9)), modulus);
  if (joins) step += fmt::format(" JOIN small AS s ON s.g {} r.v % 6", Chance(50) ? "=" : ">=");
  step += fmt::format(" WHERE r.n < {}", depth);
  const bool grouped = Chance(40);
  Piece number;
  number.width = 64;
  number.bound = 1e9;
  q.outputs.assign(grouped ? 3 : 2, number);
  std::string body = grouped ? "SELECT v, count(*), max(n) FROM r GROUP BY v" : "SELECT n, v FROM r";
  if (!grouped && Chance(50)) body += fmt::format(" WHERE v {} {}", Chance(50) ? "<" : ">=", Between(0, modulus));
  const auto text = [&](const char* type) {
    return fmt::format("WITH RECURSIVE r(n, v) AS ({} UNION {}{}) {}", fmt::format(fmt::runtime(first), type),
                       all ? "ALL " : "", step, body);
  };
  q.ours = text("INTEGER");
  q.theirs = text("INTEGER");
  return q;
}

DifferentialQuery QueryGenerator::Next() {
  if (Chance(15)) return OfSetOperation();
  if (Chance(4)) return Recursive();
  MakeFrom();
  if (Chance(25)) return Windowed();
  return Chance(52) ? Plain() : Grouped();
}

}  // namespace tessera
