#include "control/host_reports.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace sluice::control {
namespace {

class HostReportsTest : public testing::Test {
 protected:
  std::vector<iscsi::SessionView> views_;
  iscsi::HostFaultReport faults_;
  HostReports reports_{{.sessions = [this] { return views_; },
                        .faults = [this] { return std::exchange(faults_, {}); },
                        .host_of = [](const auto&, const auto&) { return "host"; }}};

  void log_in() {
    iscsi::SessionView view;
    view.tsih = 7;
    view.parameters.initiator_name = "iqn.2026-11.example:h";
    view.parameters.target_name = "iqn.2026-11.example:t";
    views_.push_back(view);
  }
  void fail_once() { faults_.faults.push_back({.initiator = "iqn.2026-11.example:h"}); }
  uint32_t sessions_of_heartbeat() const {
    wire::StreamHeartbeat beat;
    reports_.add_to(&beat);
    return beat.sessions();
  }
};

TEST_F(HostReportsTest, ASessionIsReportedWhenItBeginsAndWhenItEnds) {
  EXPECT_FALSE(reports_.changes());
  log_in();
  const auto begun = reports_.changes();
  ASSERT_TRUE(begun);
  ASSERT_EQ(begun->sessions_observed().put_size(), 1);
  EXPECT_EQ(sessions_of_heartbeat(), 1u);
  EXPECT_FALSE(reports_.changes()) << "nothing has changed";
  views_.clear();
  const auto ended = reports_.changes();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->sessions_observed().ended_size(), 1);
  EXPECT_EQ(sessions_of_heartbeat(), 0u);
}

TEST_F(HostReportsTest, CountersOfSessionsAreReportedOnceInTheIntervalOfPools) {
  log_in();
  ASSERT_TRUE(reports_.changes());
  int reported = 0;
  for (Nanos t = 0; t < 2 * limits::kObservePools; t += limits::kObserveSessions) {
    views_[0].commands++;
    if (reports_.changes()) reported++;
  }
  EXPECT_EQ(reported, 2);
}

TEST_F(HostReportsTest, TheFirstFaultIsReportedAtOnceAndFurtherOnesTogetherAfterTheInterval) {
  constexpr Nanos kBegin = 100 * kSecond;
  EXPECT_FALSE(reports_.faults(kBegin));
  fail_once();
  ASSERT_TRUE(reports_.faults(kBegin));
  fail_once();
  fail_once();
  EXPECT_FALSE(reports_.faults(kBegin + limits::kReportHostFaults - 1));
  const auto later = reports_.faults(kBegin + limits::kReportHostFaults);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->host_faults_observed().faults_size(), 2);
}

}  // namespace
}  // namespace sluice::control
