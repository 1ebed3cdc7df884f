#include "kernels/plan/launch_code.h"

#include <algorithm>
#include <utility>

namespace tessera::kernels {

using vm::OpcodeInfo;

namespace {

/// Whether an instruction reads or sets accumulator A.
bool ReadsA(Op op) {
  const vm::AccumulatorSpec in = vm::Info(op).in;
  return in != vm::AccumulatorSpec::None && in != vm::AccumulatorSpec::W;
}
bool SetsA(Op op) {
  const OpcodeInfo& info = vm::Info(op);
  return !ReadsA(op) && info.out != vm::AccumulatorSpec::None && info.out != vm::AccumulatorSpec::W;
}

}  // namespace

std::vector<bool> UsedRegisters(const LoweredProgram& lowered, bool direct,
                                const std::vector<DeviceInstruction>& code) {
  std::vector<bool> used(lowered.machine.wide_registers.size());
  for (const DeviceInstruction& d : code) {
    if (d.head.source == OperandSource::kRegister || d.head.wide_source == OperandSource::kRegister)
      used[d.head.register_at] = true;
    if (ReadsSecondRegister(d)) used[SecondOf(d).register_at] = true;
    for (int32_t k = 0; ListsRegisters(d) && k < d.p3; ++k) used[d.head.register_at + static_cast<uint32_t>(k)] = true;
  }
  for (uint32_t r : lowered.outputs) used[r] = true;
  for (uint32_t r : lowered.keys.registers) used[r] = used[r] || !direct;
  // A register that is only written still needs its memory.
  for (const DeviceInstruction& d : code) {
    if (d.head.op == Op::Store || d.head.op == Op::StoreW) used[d.head.register_at] = true;
  }
  return used;
}

void ReadKeysDirectly(const LoweredProgram& lowered, std::vector<DeviceInstruction>* code) {
  std::vector<bool> read(lowered.machine.wide_registers.size());
  for (const DeviceInstruction& d : *code) {
    if (d.head.op != Op::Group && d.head.source == OperandSource::kRegister) read[d.head.register_at] = true;
    if (ReadsSecondRegister(d)) read[SecondOf(d).register_at] = true;
    for (int32_t k = 0; ListsRegisters(d) && k < d.p3; ++k) read[d.head.register_at + static_cast<uint32_t>(k)] = true;
  }
  std::vector<DeviceInstruction> out;
  for (const DeviceInstruction& d : *code) {
    const bool key = d.head.op == Op::Store && !read[d.head.register_at] &&
                     std::find(lowered.keys.registers.begin(), lowered.keys.registers.end(), d.head.register_at) !=
                         lowered.keys.registers.end();
    if (key) continue;
    if (d.head.op != Op::Group) {
      out.push_back(d);
      continue;
    }
    for (size_t k = 0; k < lowered.keys.sources.size(); ++k) {
      DeviceInstruction part = d;
      part.head.source = lowered.keys.sources[k].source;
      part.head.slot = lowered.keys.sources[k].slot;
      part.low = lowered.keys.sources[k].payload;
      part.p3 = static_cast<int32_t>(k);
      out.push_back(part);
    }
  }
  *code = std::move(out);
}

void Compact(int keys, const LoweredProgram& lowered, std::vector<DeviceInstruction>* code) {
  std::vector<DeviceInstruction> out;
  bool a_read = false;
  for (size_t i = code->size(); i-- > 0;) {
    const DeviceInstruction& d = (*code)[i];
    if (d.head.op == Op::Group && keys == 0) continue;
    if (d.head.op == Op::Load && !a_read) continue;
    if (ReadsA(d.head.op)) {
      a_read = true;
    } else if (SetsA(d.head.op)) {
      a_read = false;
    }
    out.push_back(d);
  }
  std::reverse(out.begin(), out.end());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].head.op == Op::Next || out[i].head.op == Op::NextOuter) {  // backwards
      size_t to = i;
      while (to > 0 && out[to - 1].address >= static_cast<uint32_t>(out[i].p3)) --to;
      out[i].p3 = static_cast<int32_t>(i + 1 - to);
      if (out[i].head.p1 == lowered.joins.grid && lowered.joins.ranges.all_from >= 0) {
        while (out[to].address < static_cast<uint32_t>(lowered.joins.ranges.all_from)) ++to;
        out[i].low = static_cast<int64_t>(i + 1 - to);
      }
    }
    if (out[i].head.op != Op::SkipIfNone) continue;
    // The first remaining instruction at or after the address.
    size_t to = i + 1;
    while (out[to].address < static_cast<uint32_t>(out[i].p3)) ++to;
    out[i].p3 = static_cast<int32_t>(to - i);
  }
  *code = std::move(out);
}

std::vector<int> AddMarks(std::vector<DeviceInstruction>* code) {
  std::vector<int> marks;
  std::vector<DeviceInstruction> out;
  const auto add = [&](int what, uint32_t address) {
    marks.push_back(what);
    DeviceInstruction mark;  // a mark is an End that does not end
    mark.address = address;
    mark.low = static_cast<int64_t>(marks.size());
    out.push_back(mark);
  };
  add(kSliceBegin, 0);
  int join = -1;
  for (const DeviceInstruction& d : *code) {
    if (Probes(d)) join = d.head.p1;
    if (d.head.op == Op::SkipIfNone && join >= 0) add(std::exchange(join, -1), d.address);
    if (d.head.op == Op::End) add(kSliceEnd, d.address);
    out.push_back(d);
  }
  if (marks.size() == 2) return {};
  *code = std::move(out);
  return marks;
}

void SetPayload(const JoinShape& join, DeviceInstruction* d) {
  const PayloadShape& p = join.payload[static_cast<size_t>(d->low)];
  d->head.payload_packed = join.packed;
  d->head.payload_of_nested_loop = join.record.probe == ProbeKind::kNestedLoop;
  if (join.packed) {
    d->low = p.base;
    d->high = static_cast<int64_t>(uint64_t{p.mask} << 32 | p.shift);
    d->upper_low = p.null_field;
  } else {
    d->low = static_cast<int64_t>(p.column);
    d->high = static_cast<int64_t>(p.nulls);
    d->upper_low = static_cast<int64_t>(p.column_high);
  }
}

}  // namespace tessera::kernels
