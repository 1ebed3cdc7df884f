#include "kernels/plan/describe.h"

#include "kernels/plan/launch_code.h"

namespace tessera::kernels {

std::string Describe(const LaunchPlan& plan) {
  static constexpr const char* kVariants[] = {"lean kernel",
                                              "star kernel",
                                              "kernel for nested-loop joins",
                                              "full kernel",
                                              "kernel for nested-loop joins launched from the device",
                                              "full kernel launched from the device",
                                              "queue kernel",
                                              "selection kernel",
                                              "selection and full kernel",
                                              "kernel with large states"};
  std::string out = kVariants[static_cast<size_t>(plan.variant)];
  std::string columns;
  for (const StagedSlot& s : plan.columns.staged) columns += " c" + std::to_string(s.slot);
  out += columns.empty() ? "" : ", stages" + columns;
  std::string order;
  for (const DeviceInstruction& d : plan.code) {
    if (QueuesRows(d)) order += ", queue";
    if (d.head.op == Op::Filter) order += ", f" + std::to_string(d.head.p1);
    if (d.head.op != Op::Probe) continue;
    const JoinRecord& r = plan.joins[d.head.p1];
    order += ", t" + std::to_string(d.head.p1) + " by ";
    switch (r.probe) {
      case ProbeKind::kNestedLoop:
        order += "nested loop";
        break;
      case ProbeKind::kBits:
        order += "bitmap";
        break;
      case ProbeKind::kDirect:
        order += (r.bits != nullptr ? "bitmap and " : "") + std::to_string(r.width) + "-byte table";
        break;
      case ProbeKind::kHash32:
        order += "hash of 4-byte keys";
        break;
      case ProbeKind::kHash64:
        order += "hash of 8-byte keys";
        break;
    }
    if (r.shared_bits != kNowhere) order += " in shared memory";
  }
  out += order;
  if (plan.groups.direct) {
    out += ", " + std::to_string(plan.groups.domain) + " groups by number in " +
           (plan.groups.private_groups != 0 ? "shared" : "device") + " memory";
  } else if (plan.groups.private_groups != 0) {
    out += ", groups by hash";
  }
  return out;
}

}  // namespace tessera::kernels
