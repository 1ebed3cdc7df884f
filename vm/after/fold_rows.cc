#include "vm/after/fold_rows.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "base/int128.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "vm/meaning/interval_meaning.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/text_functions.h"
#include "vm/rows/row_keys.h"

namespace tessera::vm {
namespace {

int128_t Wide(const RowColumn& c, size_t row) { return Make128(c.high[row], c.low[row]); }

/// Whether two rows of a column are equal, or both NULL.
bool Same(const RowColumn& c, size_t a, size_t b) {
  if (IsNullAt(c, a) || IsNullAt(c, b)) return IsNullAt(c, a) == IsNullAt(c, b);
  if (c.type.storage() == StorageClass::kFloat)
    return meaning::FilterEqF::Apply(std::bit_cast<double>(c.low[a]), std::bit_cast<double>(c.low[b]));
  if (c.type.id == TypeId::kInterval) return LengthOfPacked(Wide(c, a)) == LengthOfPacked(Wide(c, b));
  return c.low[a] == c.low[b] && (c.high.empty() || c.high[a] == c.high[b]);
}

void Copy(RowColumn* c, size_t to, size_t from) {
  c->low[to] = c->low[from];
  if (!c->high.empty()) c->high[to] = c->high[from];
  if (!c->null.empty()) c->null[to] = c->null[from];
}

/// One section's fold of one group after the other.
class Folder {
 public:
  Folder(const FoldSpec& fold, const std::vector<Value>& constants, StringPool* strings, RowColumn* values)
      : fold_(fold), strings_(*strings), values_(*values) {
    if (fold.constant >= 0) constant_ = &constants[static_cast<size_t>(fold.constant)];
  }

  /// Puts the value of rows [first, end) into row `to`, at most `first`.
  Status Put(size_t first, size_t end, size_t to) {
    if (fold_.kind == Fold::kFirst) {
      Copy(&values_, to, first);
      return Status::Ok();
    }
    counted_.clear();
    for (size_t i = first; i < end; ++i) {
      if (IsNullAt(values_, i)) continue;
      if (fold_.distinct && !counted_.empty() && Same(values_, counted_.back(), i)) continue;
      counted_.push_back(i);
    }
    if (counted_.empty()) {
      Copy(&values_, to, first);  // they all are NULL
      return Status::Ok();
    }
    const auto n = counted_.size();
    switch (fold_.kind) {
      case Fold::kMode:
        Copy(&values_, to, Longest());
        break;
      case Fold::kQuantile:
        Copy(&values_, to, counted_[PlaceOfQuantile(constant_->f64, n)]);
        break;
      case Fold::kBetween: {
        const PlaceBetween place(constant_->f64, n);
        const size_t below = counted_[place.below], above = counted_[place.above];
        if (values_.type.id == TypeId::kInterval) {
          Lane lane;
          const int128_t between =
              meaning::IntervalAt(Wide(values_, below), Wide(values_, above), place.fraction, lane);
          if (lane.error != LaneError::kNone) return LaneErrorStatus(lane.error, {});
          Copy(&values_, to, below);
          values_.low[to] = Low64(between);
          values_.high[to] = High64(between);
          break;
        }
        const auto value = [&](size_t i) { return std::bit_cast<double>(values_.low[i]); };
        const double between = place.Value(value(below), value(above));
        Copy(&values_, to, below);
        values_.low[to] = std::bit_cast<int64_t>(between);
        break;
      }
      case Fold::kCounts:
        return Counts(to);
      case Fold::kJoin:
        return Join(to);
      case Fold::kNone:
      case Fold::kFirst:  // (above)
        break;
    }
    return Status::Ok();
  }

 private:
  /// A row of the longest run of equal values, the first one of several.
  size_t Longest() const {
    size_t best = counted_[0], most = 0, begin = 0;
    for (size_t i = 1; i <= counted_.size(); ++i) {
      if (i < counted_.size() && Same(values_, counted_[begin], counted_[i])) continue;
      if (i - begin > most) {
        most = i - begin;
        best = counted_[begin];
      }
      begin = i;
    }
    return best;
  }

  Status Join(size_t to) {
    text_.clear();
    for (const size_t i : counted_) {
      if (i != counted_[0]) text_ += constant_->text;
      text_ += strings_.Get(values_.low[i]);
      if (text_.size() > static_cast<size_t>(kMostTextBytes)) return LaneErrorStatus(LaneError::kTextTooLong, {});
    }
    Copy(&values_, to, counted_[0]);
    values_.low[to] = strings_.Intern(text_);
    return Status::Ok();
  }

  /// Equal values follow each other.
  Status Counts(size_t to) {
    text_ = "{";
    for (size_t begin = 0, end; begin < counted_.size(); begin = end) {
      for (end = begin + 1; end < counted_.size() && Same(values_, counted_[begin], counted_[end]);) ++end;
      if (begin > 0) text_ += ", ";
      text_ += strings_.Get(values_.low[counted_[begin]]);
      text_ += "=" + std::to_string(end - begin);
      if (text_.size() > static_cast<size_t>(kMostTextBytes)) return LaneErrorStatus(LaneError::kTextTooLong, {});
    }
    text_ += "}";
    Copy(&values_, to, counted_[0]);
    values_.low[to] = strings_.Intern(text_);
    return Status::Ok();
  }

  const FoldSpec& fold_;
  StringPool& strings_;
  RowColumn& values_;
  const Value* constant_ = nullptr;
  std::vector<size_t> counted_;  // rows of the group whose values count
  std::string text_;
};

}  // namespace

Status FoldRows(const FoldSpec& fold, size_t keys, const std::vector<Value>& constants, StringPool* strings,
                RowSet* rows) {
  const MemoryPurpose purpose("values of groups");
  if (rows->rows == 0) return Status::Ok();  // another rank has them: there may be no columns
  std::vector<RowColumn>& columns = rows->columns;
  Folder folder(fold, constants, strings, &columns[keys]);
  size_t groups = 0;
  for (size_t first = 0, end; first < rows->rows; first = end, ++groups) {
    const auto differ = [&](size_t row) {
      for (size_t k = 0; k < keys; ++k) {
        if (!Same(columns[k], first, row)) return true;
      }
      return false;
    };
    for (end = first + 1; end < rows->rows && !differ(end); ++end) ThrowIfInterrupted(end);
    ThrowIfInterrupted(groups);
    TESSERA_TRY(folder.Put(first, end, groups));
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c != keys) Copy(&columns[c], groups, first);
    }
  }
  for (RowColumn& c : columns) {
    c.low.resize(groups);
    if (!c.high.empty()) c.high.resize(groups);
    if (!c.null.empty()) c.null.resize(groups);
  }
  rows->rows = groups;
  return Status::Ok();
}

}  // namespace tessera::vm
