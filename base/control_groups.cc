#include "base/control_groups.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace tessera {
namespace {

/// A hierarchy of groups that is mounted somewhere.
struct Mount {
  std::string root;   ///< the group that is at the mount point
  std::string point;  ///< a path
  std::string kind;   ///< cgroup (version 1) or cgroup2
  std::string options;
};

bool HasWord(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string w; std::getline(words, w, ',');) {
    if (w == word) return true;
  }
  return false;
}

/// Blanks and the like are written as \040 there.
std::string Unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '\\' && i + 3 < text.size() &&
        std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    text.begin() + static_cast<std::ptrdiff_t>(i) + 4, [](char c) { return c >= '0' && c <= '7'; });
    if (is_escape) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<Mount> MountsOf(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup cgroup rw,memory"
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), behind(line.substr(dash + 3));
    std::string skipped;
    Mount mount;
    before >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    behind >> mount.kind >> skipped >> mount.options;
    if (mount.kind != "cgroup" && mount.kind != "cgroup2") continue;
    mount.root = Unescaped(mount.root);
    mount.point = root + Unescaped(mount.point);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

/// This process's group in a hierarchy of version 1 with this controller, or, with "", in that of version 2: "/a/b".
std::optional<std::string> GroupOf(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // "4:cpu,cpuacct:/a/b", and "0::/a/b" of version 2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : HasWord(controllers, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Where the group is under the mount point: "/b", or "" if it is what is mounted there. Nothing if it is not below it.
std::optional<std::string> BelowMount(const Mount& mount, const std::string& group) {
  std::string below = group == "/" ? "" : group;
  if (mount.root != "/") {
    if (below != mount.root && !below.starts_with(mount.root + "/")) return std::nullopt;
    below.erase(0, mount.root.size());
  }
  if (below.starts_with("/..")) return std::nullopt;  // outside this process's namespace of groups
  return below;
}

/// The folders of this process's group and of all that it is in, as far as they can be seen.
std::vector<std::string> FoldersOf(const std::string& root, const std::vector<Mount>& mounts,
                                   const std::string& controller) {
  std::vector<std::string> folders;
  const std::optional<std::string> group = GroupOf(root, controller);
  if (!group) return folders;
  const Mount* seen = nullptr;
  std::optional<std::string> below;
  for (const Mount& mount : mounts) {
    if (controller.empty() ? mount.kind != "cgroup2" : mount.kind != "cgroup" || !HasWord(mount.options, controller))
      continue;
    seen = &mount;
    below = BelowMount(mount, *group);
    if (below) break;
  }
  if (seen == nullptr) return folders;
  // A container may see its own group at the mount point, and have another name for it in /proc.
  std::string at = below.value_or("");
  for (;;) {
    folders.push_back(seen->point + at);
    if (at.empty()) return folders;
    at.resize(at.rfind('/'));
  }
}

/// The number in a file; `none` for "max" or no file.
template <class T>
T NumberIn(const std::string& path, T none) {
  std::ifstream file(path);
  T number{};
  return file >> number ? number : none;
}

/// Processors of a quota; a negative one means that there is none.
double Share(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

}  // namespace

ControlGroupLimits LimitsOfControlGroups(const std::string& root) {
  const std::vector<Mount> mounts = MountsOf(root);
  ControlGroupLimits limits;
  for (const std::string& folder : FoldersOf(root, mounts, "")) {
    limits.memory = std::min(limits.memory, NumberIn(folder + "/memory.max", UINT64_MAX));
    std::ifstream file(folder + "/cpu.max");  // "QUOTA PERIOD" in microseconds, or "max PERIOD"
    double quota = 0, period = 0;
    if (file >> quota >> period) limits.processors = std::min(limits.processors, Share(quota, period));
  }
  for (const std::string& folder : FoldersOf(root, mounts, "memory")) {
    limits.memory = std::min(limits.memory, NumberIn(folder + "/memory.limit_in_bytes", UINT64_MAX));
  }
  for (const std::string& folder : FoldersOf(root, mounts, "cpu")) {
    const double quota = NumberIn(folder + "/cpu.cfs_quota_us", -1.0);  // -1: none
    limits.processors = std::min(limits.processors, Share(quota, NumberIn(folder + "/cpu.cfs_period_us", 0.0)));
  }
  return limits;
}

}  // namespace tessera
