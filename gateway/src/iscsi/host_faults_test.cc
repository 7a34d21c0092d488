#include "iscsi/host_faults.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace sluice::iscsi {
namespace {

using From = HostFaults::From;

HostFault refused(const std::string& initiator, const std::string& address) {
  return {.initiator = initiator, .address = address, .target = "t", .reason = "0203: none"};
}

TEST(HostFaults, EqualFaultsAreOneEntryWithACount) {
  HostFaults faults;
  EXPECT_TRUE(faults.take_report().empty());
  for (int i = 0; i < 3; ++i) faults.record(refused("a", "1"), From::kKnown);
  HostFault other = refused("a", "1");
  other.kind = HostFaultKind::kPingLost;
  faults.record(other, From::kKnown);
  HostFaultReport report = faults.take_report();
  ASSERT_EQ(report.faults.size(), 2u);
  EXPECT_EQ(report.faults[0].count, 3u);
  EXPECT_EQ(report.faults[0].initiator, "a");
  EXPECT_EQ(report.faults[1].kind, HostFaultKind::kPingLost);
  EXPECT_EQ(report.others, 0u);
  EXPECT_TRUE(faults.take_report().empty());
}

TEST(HostFaults, OneAddressCannotDisplaceTheFaultsOfOthers) {
  HostFaults faults;
  for (int i = 0; i < 1000; ++i) faults.record(refused("x" + std::to_string(i), "1"), From::kKnown);
  faults.record(refused("host", "2"), From::kKnown);
  const HostFaultReport report = faults.take_report();
  ASSERT_EQ(report.faults.size(), limits::kMaxReportedInitiators / 2 + 1);
  EXPECT_EQ(report.faults.back().initiator, "host");
  EXPECT_EQ(report.others, 1000 - limits::kMaxReportedInitiators / 2);
}

TEST(HostFaults, StrangersAtManyAddressesCannotDisplaceTheFaultsOfHosts) {
  HostFaults faults;
  for (int i = 0; i < 1000; ++i) {
    faults.record(refused("x", std::to_string(i)), From::kStranger);
  }
  faults.record(refused("host", "h"), From::kKnown);
  HostFaultReport report = faults.take_report();
  ASSERT_EQ(report.faults.size(), limits::kMaxReportedInitiators / 2 + 1);
  EXPECT_EQ(report.faults.back().initiator, "host");
  faults.record(refused("x", "1"), From::kStranger);
  EXPECT_EQ(faults.take_report().faults.size(), 1u) << "the next report begins empty";
}

TEST(HostFaults, AReportIsBoundedInEntriesAndBytes) {
  HostFaults faults;
  for (int i = 0; i < 1000; ++i) {
    HostFault fault = refused("h" + std::to_string(i), std::to_string(i));
    fault.reason = std::string(100'000, 'r');
    faults.record(fault, From::kKnown);
  }
  const HostFaultReport report = faults.take_report();
  EXPECT_EQ(report.faults.size(), limits::kMaxReportedInitiators);
  EXPECT_EQ(report.others, 1000 - limits::kMaxReportedInitiators);
  for (const HostFault& fault : report.faults) {
    EXPECT_EQ(fault.reason.size(), HostFault::kMaxReason);
  }
}

TEST(HostFaults, ReactorsRecordConcurrentlyAndNoFaultIsLost) {
  HostFaults faults;
  uint64_t count = 0;
  {
    std::vector<std::jthread> reactors;
    for (int r = 0; r < 4; ++r) {
      reactors.emplace_back([&faults, r] {
        for (int i = 0; i < 1000; ++i) {
          faults.record(refused("h" + std::to_string(i % 9), std::to_string(r)), From::kKnown);
        }
      });
    }
    for (int i = 0; i < 10; ++i) {
      const HostFaultReport report = faults.take_report();
      for (const HostFault& fault : report.faults) count += fault.count;
      count += report.others;
    }
  }
  const HostFaultReport report = faults.take_report();
  for (const HostFault& fault : report.faults) count += fault.count;
  EXPECT_EQ(count + report.others, 4000u);
}

}  // namespace
}  // namespace sluice::iscsi
