#include "commands/copies/tokens.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "unit/change_watch.h"
#include "unit/test_backend.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

std::shared_ptr<Unit> make_unit() {
  return std::make_shared<Unit>(UnitIdentity{}, std::make_unique<TestBackend>(1 << 20), 2, nullptr);
}

scsi::RodToken parsed(const scsi::RodTokenBytes& bytes) {
  scsi::RodToken token;
  EXPECT_TRUE(scsi::parse_rod_token(bytes, &token));
  return token;
}

TEST(Tokens, ExpireAfterTheirLifetimeHoweverOftenTheyAreUsed) {
  const auto unit = make_unit();
  TokenStore store;
  const auto source =
      std::make_shared<RodSource>(unit, std::vector<scsi::BlockExtent>{{0, 8}}, 120 * kSecond, 0);
  scsi::RodTokenBytes bytes;
  ASSERT_TRUE(store.issue(source, 0, &bytes));
  const scsi::RodToken token = parsed(bytes);
  Nanos now = 0;
  while (store.use(token, now)) now += 60 * kSecond;
  EXPECT_EQ(now, 600 * kSecond);
  EXPECT_EQ(store.use(token, now).sense().ascq, 0x07);
}

TEST(Tokens, AreRevokedWithTheirUnit) {
  auto unit = make_unit();
  TokenStore store;
  const auto source =
      std::make_shared<RodSource>(unit, std::vector<scsi::BlockExtent>{{0, 8}}, kSecond, 0);
  scsi::RodTokenBytes bytes;
  ASSERT_TRUE(store.issue(source, 0, &bytes));
  unit.reset();
  EXPECT_EQ(store.use(parsed(bytes), 0).sense().ascq, 0x06);
}

TEST(Tokens, AreRevokedByWritesOnAnotherThread) {
  const auto unit = make_unit();
  TokenStore store;
  std::atomic<bool> stop{false};
  std::vector<std::shared_ptr<RodSource>> sources;
  std::thread writer([&] {
    while (!stop.load()) unit->changes().changing(100, 200, 0);
  });
  for (uint64_t i = 0; i < 500; ++i) {
    sources.push_back(std::make_shared<RodSource>(
        unit, std::vector<scsi::BlockExtent>{{i % 2 ? 150u : 300u, 8}}, kSecond, 0));
    unit->changes().add(sources.back());
    scsi::RodTokenBytes bytes;
    ASSERT_TRUE(store.issue(sources.back(), 0, &bytes));
    (void)store.use(parsed(bytes), 0);
  }
  stop.store(true);
  writer.join();
  unit->changes().changing(100, 200, 0);
  for (size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(sources[i]->revoked(), i % 2 == 1) << i;
}

}  // namespace
}  // namespace sluice::lun
