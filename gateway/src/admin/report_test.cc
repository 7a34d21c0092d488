#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "admin/lun_report.h"
#include "admin/session_report.h"
#include "admin/table.h"

namespace sluice::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

iscsi::SessionView a_session() {
  iscsi::SessionView view;
  view.tsih = 7;
  view.cid = 1;
  view.initiator_address = "192.0.2.7:51234";
  view.target_address = "192.0.2.1:3260";
  view.reactor = 2;
  view.uptime = 3725 * kSecond;
  view.silence = 500 * kMillisecond;
  view.commands = 99;
  view.reads = 60;
  view.writes = 30;
  view.in_flight = 3;
  view.data_in_bytes = 3 << 20;
  view.data_out_bytes = 512;
  view.parameters.initiator_name = "iqn.1993-08.org.debian:01:abc";
  view.parameters.target_name = "iqn.2026-11.dev.sluice:demo";
  view.parameters.isid = {0x00, 0x02, 0x3d, 0x00, 0x00, 0x01};
  view.parameters.auth_method = "CHAP";
  view.parameters.auth_user = "alice";
  view.parameters.mutual_auth = true;
  view.parameters.header_digest = true;
  view.parameters.max_burst_length = 1048576;
  return view;
}

TEST(Sessions, JsonHoldsEveryNegotiatedParameterByItsName) {
  const json list = json::parse(sessions_json({a_session()}));
  ASSERT_EQ(list.size(), 1u);
  const json& session = list[0];
  EXPECT_EQ(session["tsih"], 7);
  EXPECT_EQ(session["isid"], "00023d000001");
  EXPECT_EQ(session["uptime_seconds"], 3725.0);
  EXPECT_EQ(session["silence_seconds"], 0.5);
  EXPECT_EQ(session["auth_user"], "alice");
  const json& negotiated = session["negotiated"];
  for (const char* key :
       {"HeaderDigest", "DataDigest", "InitialR2T", "ImmediateData", "MaxBurstLength",
        "FirstBurstLength", "MaxOutstandingR2T", "TargetMaxRecvDataSegmentLength",
        "InitiatorMaxRecvDataSegmentLength", "MaxConnections", "DataPDUInOrder",
        "DataSequenceInOrder", "DefaultTime2Wait", "DefaultTime2Retain", "ErrorRecoveryLevel",
        "TaskReporting", "iSCSIProtocolLevel"}) {
    EXPECT_TRUE(negotiated.contains(key)) << key;
  }
  EXPECT_EQ(negotiated["HeaderDigest"], "CRC32C");
  EXPECT_EQ(negotiated["DataDigest"], "None");
  EXPECT_EQ(negotiated["MaxBurstLength"], 1048576);
}

TEST(Sessions, TheTableShowsNamesAddressesAndNegotiatedParameters) {
  const Result<std::string> table = sessions_table(sessions_json({a_session()}));
  ASSERT_TRUE(table.ok()) << table.error();
  for (const char* text :
       {"iqn.1993-08.org.debian:01:abc", "iqn.2026-11.dev.sluice:demo", "192.0.2.7:51234",
        "CHAP alice mutual", "1h02m", "3.0MiB", "512B", "MaxOutstandingR2T", "CRC32C", "1048576"}) {
    EXPECT_THAT(table.value(), HasSubstr(text));
  }
}

TEST(Sessions, AnEmptyListIsPrintedAsNoSessions) {
  EXPECT_EQ(sessions_json({}), "[]");
  EXPECT_EQ(sessions_table("[]").value(), "no sessions\n");
}

TEST(Sessions, NamesOfArbitraryBytesAreEscapedInJsonAndTable) {
  iscsi::SessionView view = a_session();
  view.parameters.initiator_alias = "\xff\x1b[2J\n";
  view.parameters.initiator_name = "iqn.\x1b[2J";
  const std::string text = sessions_json({view});
  EXPECT_FALSE(json::parse(text, nullptr, false).is_discarded());
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(sessions_table(text).value(), Not(HasSubstr("\x1b")));
}

TEST(Sessions, TablesRefuseJsonWithoutTheExpectedFields) {
  EXPECT_FALSE(sessions_table("[{}]").ok());
  EXPECT_FALSE(sessions_table("not json").ok());
  EXPECT_FALSE(luns_table("[{}]").ok());
}

TEST(Luns, JsonAndTableShowTheStatisticsOfALun) {
  LunView view;
  view.target = "iqn.2026-11.dev.sluice:demo";
  view.lun = 3;
  view.size_bytes = uint64_t{1} << 30;
  view.state = "ready";
  view.read_only = true;
  view.figures.operations[static_cast<size_t>(lun::Activity::kRead)] = 17;
  view.figures.failures[static_cast<size_t>(lun::Failure::kMedium)] = 5;
  view.figures.failures[static_cast<size_t>(lun::Failure::kAttention)] = 900;
  view.figures.read_bytes = 4096;
  view.figures.read_latency.count = 1;
  view.figures.read_latency.counts[10] = 1;
  const std::string text = luns_json({view});
  const json list = json::parse(text);
  EXPECT_EQ(list[0]["operations"]["read"], 17);
  EXPECT_EQ(list[0]["failures"]["medium"], 5);
  EXPECT_GT(list[0]["read_latency"]["p99_microseconds"], 1.0);
  const Result<std::string> table = luns_table(text);
  ASSERT_TRUE(table.ok()) << table.error();
  for (const char* part : {"1.0GiB", "ready read-only", "17", "4.0KiB"}) {
    EXPECT_THAT(table.value(), HasSubstr(part));
  }
  EXPECT_THAT(table.value(), Not(HasSubstr("905"))) << "attentions are no failures";
}

TEST(Columns, AreAlignedAndTrimmed) {
  Table table({"A", "LONGER"});
  table.add({"wide cell", "x"});
  EXPECT_EQ(table.text(), "A          LONGER\nwide cell  x\n");
}

TEST(HumanNumbers, AreFormattedWithAReadableUnit) {
  EXPECT_EQ(human_bytes(0), "0B");
  EXPECT_EQ(human_bytes(1023), "1023B");
  EXPECT_EQ(human_bytes(1536), "1.5KiB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "16.0EiB");
  EXPECT_EQ(human_seconds(59.9), "59s");
  EXPECT_EQ(human_seconds(185), "3m05s");
  EXPECT_EQ(human_seconds(90000), "1d01h");
}

}  // namespace
}  // namespace sluice::admin
