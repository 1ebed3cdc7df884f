// The limits of control groups, from the files of a machine that a test has made up.
#include "base/control_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMb = 1'000'000;

/// A folder that stands for "/".
class ControlGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "control_groups_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text;
  }
  void Processes(const std::string& groups, const std::string& mounts) {
    Write("/proc/self/cgroup", groups);
    Write("/proc/self/mountinfo", mounts);
  }
  ControlGroupLimits Limits() const { return LimitsOfControlGroups(root_); }

  std::string root_;
};

constexpr char kMountsOfVersion1[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
constexpr char kMountOfVersion2[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(ControlGroups, NothingIsThere) {
  EXPECT_EQ(Limits().memory, UINT64_MAX);
  EXPECT_TRUE(std::isinf(Limits().processors));
}

TEST_F(ControlGroups, NestedGroupsOfVersion1) {
  Processes("9:cpuset:/\n4:memory:/jobs/one\n2:cpu,cpuacct:/jobs/one\n0::/\n", kMountsOfVersion1);
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "300000000\n");
  Write("/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "200000000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "150000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/jobs/one/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/jobs/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Limits().memory, 200 * kMb);
  EXPECT_EQ(Limits().processors, 1.5);
  // The least counts, wherever it is.
  Write("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "100000000\n");
  EXPECT_EQ(Limits().memory, 100 * kMb);
}

TEST_F(ControlGroups, NestedGroupsOfVersion2) {
  Processes("0::/user.slice/a\\x20b/job\n", kMountOfVersion2);
  Write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
  Write("/sys/fs/cgroup/user.slice/a\\x20b/memory.max", "700000000\n");
  Write("/sys/fs/cgroup/user.slice/a\\x20b/cpu.max", "50000 100000\n");
  Write("/sys/fs/cgroup/user.slice/a\\x20b/job/memory.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/a\\x20b/job/cpu.max", "max 100000\n");
  EXPECT_EQ(Limits().memory, 700 * kMb);
  EXPECT_EQ(Limits().processors, 0.5);
}

TEST_F(ControlGroups, BothVersions) {
  Processes("4:memory:/one\n0::/two\n",
            std::string(kMountsOfVersion1) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  Write("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "500000000\n");
  Write("/sys/fs/cgroup/unified/two/cpu.max", "300000 100000\n");
  EXPECT_EQ(Limits().memory, 500 * kMb);
  EXPECT_EQ(Limits().processors, 3);
}

TEST_F(ControlGroups, ContainersSeeTheirOwnGroupAtTheMountPoint) {
  // Without a namespace of groups /proc has the name outside; what is mounted is the container's group.
  Processes("4:memory:/docker/c1/job\n", "50 31 0:32 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "800000000\n");
  Write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "600000000\n");
  EXPECT_EQ(Limits().memory, 600 * kMb);
  // A name that says nothing of the mount: the mount point is all that can be seen.
  for (const char* group : {"4:memory:/\n", "4:memory:/../other\n", "4:memory:/elsewhere\n"}) {
    Write("/proc/self/cgroup", group);
    EXPECT_EQ(Limits().memory, 800 * kMb) << group;
  }
}

TEST_F(ControlGroups, OneOfSeveralMounts) {
  // Another group's folder is mounted, too, as containers do it that start others.
  Processes("4:memory:/a/job\n",
            "50 31 0:32 /b /mnt/b rw - cgroup cgroup rw,memory\n"
            "51 31 0:32 /a /mnt/with\\040blank rw - cgroup cgroup rw,memory\n");
  Write("/mnt/b/memory.limit_in_bytes", "100000000\n");
  Write("/mnt/with blank/job/memory.limit_in_bytes", "400000000\n");
  EXPECT_EQ(Limits().memory, 400 * kMb);
}

TEST_F(ControlGroups, DamagedFilesAreNoLimits) {
  Processes("nonsense\n4:memory\n0::/\n", std::string("short\n1 2 3 - cgroup2\n") + kMountOfVersion2);
  Write("/sys/fs/cgroup/memory.max", "\n");
  Write("/sys/fs/cgroup/cpu.max", "1 0\n");
  EXPECT_EQ(Limits().memory, UINT64_MAX);
  EXPECT_TRUE(std::isinf(Limits().processors));
}

}  // namespace
}  // namespace tessera::test
