#include "kernels/run/join_passes.h"

#include "vm/program/section_traits.h"

namespace tessera::kernels {

JoinPasses::~JoinPasses() {
  for (const PassPlan& p : plans_) joins_.DropPart(p.join);
}

Status JoinPasses::Plan() {
  const vm::Program& program = *context_.program;
  const vm::SectionTraits& traits = context_.traits->section(context_.section);
  for (int join = 0; join < static_cast<int>(program.joins.size()); ++join) {
    const vm::ProbeTrait* const probe = traits.Probe(join);
    const JoinPartitions* parts = joins_.parts(join);
    if (probe == nullptr || parts == nullptr) continue;
    TESSERA_ASSIGN(const PassPlan plan, PlanPasses(program, context_.section, traits, *probe, *parts));
    plans_.push_back(plan);
    count_ *= parts->parts.size();
  }
  loaded_.assign(plans_.size(), SIZE_MAX);
  if (count_ > 1) context_.statistics->join_passes = count_;
  return Status::Ok();
}

Status JoinPasses::LoadPass(uint64_t pass, LoweredProgram* lowered) {
  if (plans_.empty()) return Status::Ok();
  uint64_t rest = pass;
  vm::Program program = *context_.program;
  added_code_ = 0;
  for (size_t i = plans_.size(); i-- > 0;) {
    const PassPlan& plan = plans_[i];
    const std::vector<JoinPartition>& parts = joins_.parts(plan.join)->parts;
    const size_t number = rest % parts.size();
    rest /= parts.size();
    if (loaded_[i] != number) TESSERA_TRY(joins_.LoadPart(*context_.program, *context_.traits, plan.join, number));
    loaded_[i] = number;
    if (plan.filtered) added_code_ += AddPartFilter(context_.section, plan, parts[number], &program);
  }
  if (added_code_ == 0) return Status::Ok();
  const vm::SectionTraits traits = vm::TraitsOf(program, program.sections[static_cast<size_t>(context_.section)]);
  *lowered = LowerProgram(program, context_.section, traits, context_.strings);
  return Status::Ok();
}

}  // namespace tessera::kernels
