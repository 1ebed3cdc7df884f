#include "mpi/wire.h"

#include <algorithm>
#include <unordered_map>

namespace tessera {
namespace {

constexpr uint32_t kNoValue = UINT32_MAX;

/// Numbers the identifiers of one text column within a message.
class ValueNumbers {
 public:
  explicit ValueNumbers(const vm::RowColumn& column) {
    const auto is_null = [&](size_t r) { return !column.null.empty() && column.null[r] != 0; };
    const size_t rows = column.low.size();
    uint64_t size = 0;  // a NULL's identifier means nothing
    for (size_t r = 0; r < rows; ++r) {
      if (!is_null(r)) size = std::max(size, static_cast<uint64_t>(column.low[r]) + 1);
    }
    // The pool counts its strings from 0 on: an array, unless few rows use a few of many.
    if (size <= 16 * rows + 4096) array_.assign(size, kNoValue);
    numbers_.reserve(rows);
    for (size_t r = 0; r < rows; ++r) numbers_.push_back(is_null(r) ? kNoValue : Of(column.low[r]));
  }
  const std::vector<uint32_t>& numbers() const { return numbers_; }
  const std::vector<int64_t>& identifiers() const { return identifiers_; }

 private:
  uint32_t Of(int64_t id) {
    uint32_t& number = array_.empty() ? map_.try_emplace(id, kNoValue).first->second : array_[static_cast<size_t>(id)];
    if (number == kNoValue) {
      number = static_cast<uint32_t>(identifiers_.size());
      identifiers_.push_back(id);
    }
    return number;
  }

  std::vector<uint32_t> array_;
  std::unordered_map<int64_t, uint32_t> map_;
  std::vector<uint32_t> numbers_;
  std::vector<int64_t> identifiers_;
};

}  // namespace

void WriteStatus(const Status& status, WireWriter* out) {
  out->Number(status.ok());
  if (status.ok()) return;
  out->Number(status.code());
  out->Number<int32_t>(status.position());
  out->Text(status.message());
  out->Text(status.hint());
}

Status ReadStatus(WireReader* in) {
  if (in->Number<bool>()) return Status::Ok();
  const auto code = in->Number<ErrorCode>();
  const auto position = in->Number<int32_t>();
  std::string message(in->Text()), hint(in->Text());
  return {code, std::move(message), std::move(hint), position};
}

void WriteShipment(const vm::Shipment& shipment, const vm::StringPool& strings, WireWriter* out) {
  size_t size = 64 + shipment.units.size() * sizeof(vm::UnitRows);
  for (const vm::RowColumn& c : shipment.rows.columns) size += (c.low.size() + c.high.size()) * 8 + c.null.size() + 64;
  out->Reserve(size);
  out->Vector(shipment.units);
  out->Number(shipment.through);
  out->Number(shipment.last);
  out->Number<uint64_t>(shipment.rows.rows);
  out->Number<uint64_t>(shipment.rows.columns.size());
  for (const vm::RowColumn& c : shipment.rows.columns) {
    out->Number(c.type);
    out->Vector(c.null);
    if (c.type.storage() != StorageClass::kText) {
      out->Vector(c.low);
      out->Vector(c.high);
      continue;
    }
    const ValueNumbers values(c);
    out->Number<uint64_t>(values.identifiers().size());
    for (const int64_t id : values.identifiers()) out->Text(strings.Get(id));
    out->Vector(values.numbers());
  }
}

Result<vm::Shipment> ReadShipment(std::string_view bytes, vm::StringPool* strings) {
  WireReader in(bytes);
  const Status damaged(ErrorCode::kCorrupt, "rows of another rank are damaged");
  vm::Shipment out;
  out.units = in.Vector<vm::UnitRows>();
  out.through = in.Number<uint64_t>();
  out.last = in.Number<bool>();
  out.rows.rows = in.Number<uint64_t>();
  const size_t columns = in.Count(sizeof(SqlType) + 16);
  for (size_t i = 0; i < columns && !in.failed(); ++i) {
    vm::RowColumn c;
    c.type = in.Number<SqlType>();
    c.null = in.Vector<uint8_t>();
    if (c.type.storage() != StorageClass::kText) {
      c.low = in.Vector<int64_t>();
      c.high = in.Vector<int64_t>();
    } else {
      std::vector<int64_t> identifiers(in.Count(sizeof(uint64_t)));
      for (int64_t& id : identifiers) id = strings->Intern(in.Text());
      for (const uint32_t number : in.Vector<uint32_t>()) {
        if (number != kNoValue && number >= identifiers.size()) return damaged;
        c.low.push_back(number == kNoValue ? 0 : identifiers[number]);
      }
    }
    const auto fits = [&](size_t n) { return n == 0 || n == out.rows.rows; };
    if (c.low.size() != out.rows.rows || !fits(c.high.size()) || !fits(c.null.size())) return damaged;
    out.rows.columns.push_back(std::move(c));
  }
  TESSERA_TRY(in.End());
  uint64_t rows = 0;
  for (const vm::UnitRows& u : out.units) rows += u.rows;
  if (!out.units.empty() && rows != out.rows.rows) return damaged;
  return out;
}

void WriteStatistics(const vm::RunStatistics& statistics, WireWriter* out) {
  out->Number(statistics.mine);
  out->Number<uint64_t>(statistics.sections.size());
  for (const vm::SectionStatistics& s : statistics.sections) {
    out->Number<int32_t>(s.section);
    out->Text(s.label);
    out->Number(s.on_gpu);
    for (const uint64_t n :
         {s.rows_in, s.rows_out, s.tablets, s.tablets_skipped, s.bytes_read, s.bytes_transferred, s.bytes_staged,
          s.bytes_on_demand, s.pairs, s.pruned_pairs, s.child_grids, s.join_passes, s.group_spills, s.spilled_groups})
      out->Number(n);
    out->Number<uint64_t>(s.joined.size());
    for (const vm::JoinedRows& j : s.joined) {
      out->Text(j.table);
      out->Number(j.rows);
      out->Number(j.milliseconds);
    }
    out->Text(s.device_plan);
    out->Number(s.milliseconds);
    out->Number(s.kernel_milliseconds);
    out->Number(s.transfer_milliseconds);
  }
}

vm::RunStatistics ReadStatistics(WireReader* in) {
  vm::RunStatistics out;
  out.mine = in->Number<vm::RankStatistics>();
  const size_t sections = in->Count(sizeof(int32_t));
  for (size_t i = 0; i < sections && !in->failed(); ++i) {
    vm::SectionStatistics s;
    s.section = in->Number<int32_t>();
    s.label = std::string(in->Text());
    s.on_gpu = in->Number<bool>();
    for (uint64_t* n : {&s.rows_in, &s.rows_out, &s.tablets, &s.tablets_skipped, &s.bytes_read, &s.bytes_transferred,
                        &s.bytes_staged, &s.bytes_on_demand, &s.pairs, &s.pruned_pairs, &s.child_grids, &s.join_passes,
                        &s.group_spills, &s.spilled_groups})
      *n = in->Number<uint64_t>();
    const size_t joined = in->Count(sizeof(uint64_t));
    for (size_t j = 0; j < joined && !in->failed(); ++j) {
      const std::string table(in->Text());
      const uint64_t rows = in->Number<uint64_t>();
      s.joined.push_back({table, rows, in->Number<double>()});
    }
    s.device_plan = std::string(in->Text());
    s.milliseconds = in->Number<double>();
    s.kernel_milliseconds = in->Number<double>();
    s.transfer_milliseconds = in->Number<double>();
    out.sections.push_back(std::move(s));
  }
  return out;
}

}  // namespace tessera
