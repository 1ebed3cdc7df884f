// What the machine does between instructions: it is set up for a section, and for a tile. interpreter.cc has the rest.

#include "vm/machine/tile_machine.h"

#include <algorithm>

namespace tessera::vm {
namespace {

/// Whether an instruction has W or a wide operand.
bool HasWide(const Program& program, const Section& section) {
  bool wide = false;
  for (const Instruction& in : section.code) {
    const OpcodeInfo& info = Info(in.op);
    wide |= info.in == AccumulatorSpec::W || info.out == AccumulatorSpec::W || info.p[1] == OperandSpec::SrcW;
    // A key may be a wide operand where no instruction has a wide accumulator.
    if (!TakesKeys(info)) continue;
    const Section& keyed =
        info.role == Role::Probe ? program.sections[static_cast<size_t>(program.joins[in.p1].section)] : section;
    for (int k = 0; k < in.p3; ++k) wide |= IsWide(keyed.columns[static_cast<size_t>(k)]);
  }
  return wide;
}

}  // namespace

TileMachine::TileMachine(const Program& program, int section, const SectionTraits& traits,
                         const std::vector<std::unique_ptr<JoinIndex>>& joins, StringPool* strings)
    : program_(program),
      section_(program.sections[static_cast<size_t>(section)]),
      traits_(traits),
      joins_(joins),
      strings_(strings),
      constants_(program, strings),
      texts_(section_, traits, strings),
      registers_(section_.registers.begin(), section_.registers.end()),
      masks_(static_cast<size_t>(section_.masks)),
      probes_(program.joins.size()),
      codes_(section_.slots.size()),
      requests_{.stops = {}, .counts = {traits, section_.code.size()}, .top = {}, .detour = {}} {
  for (const ProbeTrait& p : traits.probes) {
    ProbeState& probe = probes_[static_cast<size_t>(p.join)];
    if (p.keys == 0) probe.crossed.end = static_cast<uint32_t>(joins[static_cast<size_t>(p.join)]->rows().rows);
    if (p.keys > 0) probe.cursor.resize(kTileRows, kNoRow);
    if (IsOuter(p.form)) probe.outer = true;
  }
  const auto groups = [](const Instruction& in) { return Info(in.op).role == Role::Group; };
  if (std::any_of(section_.code.begin(), section_.code.end(), groups)) groups_.of_row.resize(kTileRows);
  if (HasWide(program, section_)) {
    acc_.MakeWide();
    scratch_.wide = std::make_unique_for_overwrite<Scratch::Wide>();
  }
}

TileMachine::~TileMachine() = default;

void TileMachine::MeetRows(int join, uint32_t first, uint32_t end, int all_from) {
  probes_[static_cast<size_t>(join)].crossed = {first, end, kNoRow};
  requests_.detour = {.to = all_from};
  if (all_from < 0) return;
  const ProbeTrait& probe = *traits_.Probe(join);
  if (probe.HasLoop()) requests_.detour.from = section_.code[probe.next].p2;
}

void TileMachine::EmitOnly(const TopRows* top) {
  requests_.top = {.rows = top};
  if (top == nullptr) return;
  const auto stores = [&](const Instruction& in) {
    return Info(in.op).shape == Shape::Store && static_cast<size_t>(in.p2) == top->column();
  };
  const auto store = std::find_if(section_.code.begin(), section_.code.end(), stores);
  const auto emit = std::find_if_not(store, section_.code.end(), OnlyMoves);
  if (emit == section_.code.end() || emit->op != Opcode::Emit || std::any_of(store + 1, emit, stores)) return;
  requests_.top.known_at = static_cast<int>(store - section_.code.begin()) + 1;
  requests_.top.emit_at = static_cast<int>(emit - section_.code.begin());
}

Status TileMachine::RunTile(const TabletEncoding& tablet, uint32_t first, int rows, const TileSinks& sinks) {
  tile_.tablet = &tablet;
  tile_.first = first;
  tile_.sinks = sinks;
  ++tile_.number;
  mask_.SetToAll(rows);
  for (Register& r : registers_) r.may_be_null = false;
  texts_.of_tile.Begin(tablet);
  next_ = 0;
  requests_.counts.BeginTile();
  return Interpret();
}

Status TileMachine::ResumeTile(const TileSinks& sinks) {
  tile_.sinks = sinks;
  requests_.stops.suspended = false;
  return Interpret();
}

}  // namespace tessera::vm
