#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/check_names.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "backend/backend.h"
#include "metrics/collector.h"
#include "metrics/endpoint.h"
#include "nexus/exports.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class NoReactors final : public Reactors {
 public:
  unsigned count() const override { return 1; }
  unsigned current() const override { return 1; }
  void post(unsigned, std::function<void()>) override {}
};

class Metrics : public testing::Test {
 protected:
  Metrics() {
    backend::Spec spec;
    spec.kind = "null";
    spec.size = 1 << 20;
    lun::UnitIdentity identity;
    identity.uuid[0] = 1;
    unit_ =
        std::make_shared<lun::Unit>(identity, std::move(backend::open(spec)).value(), 1, nullptr);
    auto target = std::make_shared<lun::Target>("iqn.2026-11.example:t", "", 1);
    target->set_luns({{.lun = 5, .unit = unit_}}, reactors_);
    exports_.add(target);
  }

  Sources sources() {
    return {.counters =
                [this] {
                  return iscsi::CountersSnapshot{
                      .reactors = {read_counters(first_), read_counters(second_)}};
                },
            .exports = &exports_,
            .version = "1.2.3"};
  }
  std::string text() {
    return prometheus::TextSerializer().Serialize(Collector(sources()).Collect());
  }
  std::string latency_text() {
    return prometheus::TextSerializer().Serialize(LunLatencyCollector(exports_).Collect());
  }

  NoReactors reactors_;
  lun::Exports exports_;
  std::shared_ptr<lun::Unit> unit_;
  iscsi::Counters first_;
  iscsi::Counters second_;
};

TEST_F(Metrics, NamesFollowPrometheusConventions) {
  std::set<std::string> names;
  std::vector<MetricFamily> families = Collector(sources()).Collect();
  std::ranges::move(LunLatencyCollector(exports_).Collect(), std::back_inserter(families));
  for (const MetricFamily& family : families) {
    const std::string& name = family.name;
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_TRUE(prometheus::CheckMetricName(name)) << name;
    EXPECT_THAT(name, StartsWith("sluice_gateway_"));
    EXPECT_FALSE(family.help.empty()) << name;
    EXPECT_EQ(family.help.back(), '.') << name;
    EXPECT_EQ(family.type == MetricType::Counter, name.ends_with("_total")) << name;
    EXPECT_FALSE(family.type == MetricType::Histogram && !name.ends_with("_seconds")) << name;
    for (const char* unit : {"_ms", "_us", "_nanos", "_kb", "_micros"}) {
      EXPECT_EQ((name + "_").find(std::string(unit) + "_"), std::string::npos)
          << name << " isn't in a base unit";
    }
    std::set<std::string> series;
    for (const auto& metric : family.metric) {
      std::string labels;
      for (const auto& label : metric.label) {
        EXPECT_TRUE(prometheus::CheckLabelName(label.name)) << label.name;
        labels += label.name + "=" + label.value + ";";
      }
      EXPECT_TRUE(series.insert(labels).second) << name << " repeats " << labels;
    }
  }
}

TEST_F(Metrics, TextHasHelpAndTypeBeforeEverySample) {
  std::istringstream lines(text());
  std::set<std::string> helped;
  std::map<std::string, std::string> types;
  int samples = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, kind, name, type;
    words >> mark >> kind >> name >> type;
    if (mark != "#") {
      std::string sample = line.substr(0, line.find_first_of("{ "));
      for (const char* suffix : {"_bucket", "_sum", "_count"}) {
        if (sample.ends_with(suffix)) sample.resize(sample.size() - std::string(suffix).size());
      }
      EXPECT_TRUE(helped.contains(sample) && types.contains(sample)) << line;
      ++samples;
    } else if (kind == "HELP") {
      helped.insert(name);
    } else if (kind == "TYPE") {
      types[name] = type;
    }
  }
  EXPECT_GT(samples, 100);
}

TEST_F(Metrics, ReactorCountersAreSummedAndWireBytesAreSeparateFromPayload) {
  first_.received_bytes.add(100);
  second_.received_bytes.add(48);
  first_.data_in_bytes.add(7);
  first_.connections_opened.add(3);
  second_.connections_closed.add(1);
  second_.busy_nanos.add(1'500'000'000);
  first_.logins[iscsi::login_slot(iscsi::LoginStatus::kAuthenticationFailure)].add();
  first_.rejects[4].add(2);
  second_.task_functions[5].add(3);
  second_.buffer_in_use_bytes.set(4096);
  const std::string out = text();
  for (const char* line :
       {"sluice_gateway_wire_bytes_total{direction=\"receive\"} 148\n",
        "sluice_gateway_payload_bytes_total{direction=\"read\"} 7\n",
        "sluice_gateway_connections 2\n",
        "sluice_gateway_reactor_busy_seconds_total{reactor=\"1\"} 1.5\n",
        "sluice_gateway_logins_total{result=\"authentication-failure\"} 1\n",
        "sluice_gateway_logins_total{result=\"success\"} 0\n",
        "sluice_gateway_rejects_total{reason=\"protocol-error\"} 2\n",
        "sluice_gateway_task_management_functions_total{function=\"logical-unit-reset\"} 3\n",
        "sluice_gateway_buffer_used_bytes{reactor=\"1\"} 4096\n",
        "sluice_gateway_build_info{version=\"1.2.3\"} 1\n"}) {
    EXPECT_THAT(out, HasSubstr(line));
  }
}

TEST_F(Metrics, ALunCountsOperationsBytesLatencyAndFailures) {
  auto& shard = unit_->statistics().shard(0);
  shard.begun.add(3);
  shard.complete(lun::Activity::kRead).add(100 * kMicrosecond);
  shard.complete(lun::Activity::kRead).add(20 * kSecond);
  shard.read_bytes.add(8192);
  shard.fail(lun::Failure::kMedium);
  const std::string out = text();
  const std::string lun = "target=\"iqn.2026-11.example:t\",lun=\"5\"";
  for (const std::string& line :
       {"lun_operations_total{" + lun + ",operation=\"read\"} 2\n",
        "lun_payload_bytes_total{" + lun + ",operation=\"read\"} 8192\n",
        "lun_failures_total{" + lun + ",kind=\"medium\"} 1\n", "lun_queue_depth{" + lun + "} 1\n",
        "lun_size_bytes{" + lun + "} 1048576\n", "lun_ready{" + lun + "} 1\n",
        "lun_stuck{" + lun + "} 0\n",
        "lun_service_seconds_total{" + lun + ",operation=\"read\"} 20.0001\n"}) {
    EXPECT_THAT(out, HasSubstr("sluice_gateway_" + line));
  }
  EXPECT_THAT(out, Not(HasSubstr("kind=\"not-ready\""))) << "a kind of failure that it has not had";
  const std::string latency = latency_text();
  for (const std::string& line :
       {"lun_latency_seconds_count{" + lun + ",operation=\"read\"} 2\n",
        "lun_latency_seconds_bucket{" + lun + ",operation=\"read\",le=\"+Inf\"} 2\n"}) {
    EXPECT_THAT(latency, HasSubstr("sluice_gateway_" + line));
  }
}

TEST_F(Metrics, AThousandLunsAreLessThanTwoMegabytesByDefault) {
  constexpr size_t kLuns = 1000;
  constexpr size_t kMostBytes = 2'000'000;
  auto& shard = unit_->statistics().shard(0);
  shard.complete(lun::Activity::kRead).add(1'234'567'890'123, 1'000'000);
  shard.read_bytes.add(uint64_t{1} << 50);
  std::vector<lun::Target::LunEntry> luns;
  for (uint64_t number = 0; number < kLuns; ++number)
    luns.push_back({.lun = number, .unit = unit_});
  const std::string iqn = "iqn.2026-11.dev.sluice:a-name-of-usual-length";
  auto target = std::make_shared<lun::Target>(iqn, "", 2);
  target->set_luns(luns, reactors_);
  exports_.add(target);
  const std::string out = text();
  EXPECT_LT(out.size(), kMostBytes);
  for (const char* name :
       {"lun_operations_total", "lun_payload_bytes_total", "lun_service_seconds_total",
        "lun_queue_depth", "lun_size_bytes", "lun_ready", "lun_stuck"}) {
    EXPECT_THAT(out, HasSubstr("sluice_gateway_" + std::string(name) + "{target=\"" + iqn +
                               "\",lun=\"999\""));
  }
}

TEST_F(Metrics, LatencyBucketsAreAscendingAndCumulative) {
  auto& shard = unit_->statistics().shard(0);
  shard.complete(lun::Activity::kWrite).add(100 * kMicrosecond);
  for (const MetricFamily& family : LunLatencyCollector(exports_).Collect()) {
    for (const auto& metric : family.metric) {
      if (metric.label.back().value != "write") continue;
      const auto& buckets = metric.histogram.bucket;
      EXPECT_NEAR(buckets.front().upper_bound, 8.192e-6, 1e-12);
      for (size_t i = 1; i < buckets.size(); ++i) {
        EXPECT_LT(buckets[i - 1].upper_bound, buckets[i].upper_bound);
        EXPECT_LE(buckets[i - 1].cumulative_count, buckets[i].cumulative_count);
      }
      for (const auto& bucket : buckets) {
        EXPECT_EQ(bucket.cumulative_count, bucket.upper_bound > 100e-6 ? 1u : 0u);
      }
      return;
    }
  }
  FAIL() << "no write latency";
}

// GET, the whole answer.
std::string scrape(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::array<char, 65536> chunk;
    for (ssize_t got; (got = read(fd, chunk.data(), chunk.size())) > 0;) {
      answer.append(chunk.data(), static_cast<size_t>(got));
    }
  }
  close(fd);
  return answer;
}

TEST_F(Metrics, AreServedOverHttp) {
  const Result<std::unique_ptr<Endpoint>> endpoint = Endpoint::start("127.0.0.1:0", sources());
  ASSERT_TRUE(endpoint.ok()) << endpoint.error();
  const std::string answer = scrape(endpoint.value()->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("sluice_gateway_lun_operations_total"));
  EXPECT_THAT(answer, Not(HasSubstr("sluice_gateway_lun_latency_seconds_bucket")));
  const std::string latency = scrape(endpoint.value()->port(), "/metrics/lun-latency");
  EXPECT_THAT(latency, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(latency, HasSubstr("sluice_gateway_lun_latency_seconds_bucket"));
}

TEST_F(Metrics, AnAddressInUseIsReportedInTheError) {
  const Result<std::unique_ptr<Endpoint>> first = Endpoint::start("127.0.0.1:0", sources());
  ASSERT_TRUE(first.ok()) << first.error();
  const std::string address = "127.0.0.1:" + std::to_string(first.value()->port());
  const Result<std::unique_ptr<Endpoint>> second = Endpoint::start(address, sources());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), "can't serve metrics at " + address + "; is the address in use?");
}

}  // namespace
}  // namespace sluice::metrics
