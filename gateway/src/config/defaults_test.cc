// Every documented default of a configuration key, where it takes effect: in what a file without
// the key is read as. Literal defaults are written out and change nothing; those in parentheses,
// which the program works out, are compared one by one. tests/defaults requires that each row of
// the table is proven here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "config/default_name.h"
#include "config/flags.h"
#include "config/keys.h"
#include "config/parse_fixture.h"
#include "config/summary.h"
#include "config/uuid.h"

namespace sluice::config {
namespace {

using testing::HasSubstr;

// The literal defaults of a section, as keys of one mapping.
std::string written_out(std::string_view section) {
  std::string all;
  for (const Key& key : keys_of(section)) {
    if (key.required || key.fallback.empty() || key.fallback.front() == '(') continue;
    all += ", " + std::string(key.name) + ": " + std::string(key.fallback);
  }
  return all;
}

TEST(Defaults, OfAListenerMatchTheKeyTable) {
  const std::string head = "listen: [{address: 127.0.0.1";
  const Result<Config> plain = read_yaml(head + "}]\n");
  const Result<Config> given = read_yaml(head + written_out("listen") + "}]\n");
  ASSERT_TRUE(plain.ok() && given.ok());
  EXPECT_EQ(plain.value().portals, given.value().portals);
  EXPECT_EQ(plain.value().portals[0].address, "127.0.0.1:3260") << "without a port";
  EXPECT_EQ(plain.value().portals[0].advertise, "") << "the address";
}

TEST(Defaults, OfAHostMatchTheKeyTable) {
  const std::string head = "targets: [{hosts: [{initiators: ['*']";
  const Result<Config> plain = read_yaml(head + "}]}]\n");
  const Result<Config> given = read_yaml(head + written_out("hosts") + "}]}]\n");
  ASSERT_TRUE(plain.ok() && given.ok());
  const HostConfig& host = plain.value().targets[0].hosts[0];
  EXPECT_EQ(host, given.value().targets[0].hosts[0]);
  EXPECT_FALSE(host.chap.configured());
  EXPECT_FALSE(host.mutual.configured());
  EXPECT_FALSE(host.read_only);
}

TEST(Defaults, OfTheControlPlaneMatchTheKeyTable) {
  const std::string head =
      "control-plane: {endpoints: ['c:7460'], ca: /ca, certificate: /c, key: /none";
  const Result<Config> plain = read_yaml(head + "}\n");
  const Result<Config> given = read_yaml(head + written_out("control-plane") + "}\n");
  ASSERT_TRUE(plain.ok()) << plain.error();
  ASSERT_TRUE(given.ok()) << given.error();
  const ControlPlaneConfig& control = plain.value().control_plane;
  EXPECT_EQ(control, given.value().control_plane);
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  EXPECT_EQ(control.gateway, host);
  EXPECT_EQ(control.node, host);
  EXPECT_TRUE(plain.value().portals.empty()) << "they come from the control plane";
  for (const char* lacking : {"ca: /ca, ", "certificate: /c, ", "key: /none"}) {
    std::string without = head;
    without.erase(without.find(lacking), std::string_view(lacking).size());
    EXPECT_FALSE(read_yaml(without + "}\n").ok()) << "required without insecure-loopback";
  }
  EXPECT_TRUE(
      read_yaml("control-plane: {endpoints: ['127.0.0.1:1'], insecure-loopback: on}\n").ok());
}

TEST(Defaults, OfACephImageMatchTheKeyTable) {
  const std::string head = "  - {id: 0, backend: rbd, rbd: {pool: p, image: i";
  const Result<Config> plain = read_yaml(with_luns(head + "}}\n"));
  const Result<Config> given = read_yaml(with_luns(head + written_out("rbd") + "}}\n"));
  ASSERT_TRUE(plain.ok() && given.ok());
  const backend::Spec& spec = plain.value().targets[0].luns[0].spec;
  EXPECT_TRUE(same(spec, given.value().targets[0].luns[0].spec));
  EXPECT_EQ(spec.path, "p/i") << "no namespace";
  EXPECT_EQ(spec.ceph.monitors, "") << "those of conf";
  EXPECT_EQ(spec.ceph.keyring_file, "") << "where conf says";
}

TEST(Defaults, OfAnEmptyFileAreAsDocumented) {
  const Config config = read_yaml("").value();
  ASSERT_EQ(config.portals.size(), 1U);
  EXPECT_EQ(config.portals[0].address, "0.0.0.0:3260");
  cpu_set_t cpus;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
  EXPECT_EQ(config.reactors,
            std::min(static_cast<unsigned>(CPU_COUNT(&cpus)), limits::kMaxReactors));
  EXPECT_TRUE(config.reactor_cpus.empty());
  EXPECT_EQ(config.metrics, "");
  EXPECT_EQ(config.busy_poll, 0);
  EXPECT_EQ(config.tcp_congestion, "cubic");
  EXPECT_TRUE(config.targets.empty());
  EXPECT_FALSE(config.control_plane.given());
  EXPECT_FALSE(config.discovery.chap.configured());
  EXPECT_FALSE(config.discovery.mutual.configured());
  EXPECT_EQ(read_yaml("tcp-congestion: system\n").value().tcp_congestion, "")
      << "the system's default stays";
}

TEST(Defaults, OfPathsDependOnTheUser) {
  const Config config = read_yaml("").value();
  if (geteuid() == 0) {
    EXPECT_EQ(config.admin_socket, "/run/sluice/gateway.sock");
    EXPECT_EQ(config.state_directory, "/var/lib/sluice");
    ASSERT_EQ(seteuid(65534), 0);
  }
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
  ASSERT_EQ(setenv("XDG_STATE_HOME", "/srv/state", 1), 0);
  const Config other = read_yaml("").value();
  EXPECT_EQ(other.admin_socket, "/run/user/7/sluice/gateway.sock");
  EXPECT_EQ(other.state_directory, "/srv/state/sluice");
  if (getuid() == 0) {
    ASSERT_EQ(seteuid(0), 0);
  }
}

TEST(Defaults, OfATargetAreAsDocumented) {
  const Config config = read_yaml("targets: [{hosts: []}]\n").value();
  const TargetConfig& target = config.targets[0];
  EXPECT_EQ(target.iqn, default_target_name());
  EXPECT_EQ(target.alias, "");
  EXPECT_TRUE(target.luns.empty());
}

TEST(Defaults, OfALunAreAsDocumented) {
  const Config config = read_yaml(with_luns("  - {id: 3, backend: file, path: /disk}\n")).value();
  const LunConfig& lun = config.targets[0].luns[0];
  EXPECT_EQ(lun.uuid, derive_uuid("iqn.2026-11.example:t", 3, lun.spec.kind, "/disk"));
  EXPECT_EQ(lun.spec.size, 0U) << "the file's own";
  EXPECT_EQ(lun.oui, 0U);
}

TEST(Defaults, OfFlagsMatchTheDefaultsOfTheirKeys) {
  const char* const arguments[] = {"sluice-gateway", "--lun", "0=null:1GiB"};
  const Invocation invocation = parse_flags(3, arguments);
  ASSERT_TRUE(invocation.flags.has_value()) << invocation.output;
  const Result<Config> flags = load(*invocation.flags);
  ASSERT_TRUE(flags.ok()) << flags.error();
  const Config file = read_yaml("").value();
  const Config& config = flags.value();
  EXPECT_EQ(config.portals, file.portals);
  EXPECT_EQ(config.reactors, file.reactors);
  EXPECT_EQ(config.metrics, file.metrics);
  EXPECT_EQ(config.state_directory, file.state_directory);
  EXPECT_EQ(config.admin_socket, file.admin_socket);
  EXPECT_EQ(config.log, file.log);
  EXPECT_EQ(config.core_dumps, file.core_dumps);
  EXPECT_EQ(config.connections, file.connections);
  EXPECT_TRUE(same(config.offer, file.offer));
  EXPECT_EQ(config.targets[0].iqn, default_target_name());
  ASSERT_EQ(config.targets[0].hosts.size(), 1U);
  EXPECT_TRUE(config.targets[0].hosts[0].initiators.empty()) << "without --chap-file: any host";
  const char* const cluster[] = {"sluice-gateway",
                                 "--control-plane",
                                 "c:7460",
                                 "--tls-ca",
                                 "/ca",
                                 "--tls-cert",
                                 "/c",
                                 "--tls-key",
                                 "/none"};
  const Invocation joining = parse_flags(9, cluster);
  ASSERT_TRUE(joining.flags.has_value()) << joining.output;
  const Result<Config> joined = load(*joining.flags);
  ASSERT_TRUE(joined.ok()) << joined.error();
  EXPECT_EQ(joined.value().control_plane,
            read_yaml("control-plane: {endpoints: ['c:7460'], ca: /ca, certificate: /c, "
                      "key: /none}\n")
                .value()
                .control_plane);
}

}  // namespace
}  // namespace sluice::config
