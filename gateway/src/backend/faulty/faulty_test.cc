#include "faulty/faulty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/test_driver.h"

namespace sluice::backend {
namespace {

using testing::HasSubstr;

std::unique_ptr<Backend> memory_with(const std::string& fault) {
  Spec spec;
  spec.kind = "memory";
  spec.size = 1 << 20;
  auto opened = with_faults(open(spec).value(), fault, spec.block_size);
  EXPECT_TRUE(opened.ok()) << opened.error();
  return std::move(*opened);
}

TEST(Faults, EveryNthReadFailsAndWritesDoNot) {
  auto backend = memory_with("read-error-every=3");
  Driver driver(*backend);
  Bytes block(512);
  for (int i = 1; i <= 9; ++i) {
    EXPECT_EQ(driver.write(0, block), 0);
    EXPECT_EQ(driver.submit(Op::kRead, 0, 512, {{block.data(), 512}}), i % 3 == 0 ? -EIO : 512);
  }
}

TEST(Faults, WriteErrorsAffectEveryOperationThatChangesData) {
  auto backend = memory_with("write-error-every=1,errno=EREMOTEIO");
  Driver driver(*backend);
  EXPECT_EQ(driver.write(0, Bytes(512)), -EREMOTEIO);
  EXPECT_EQ(driver.discard(0, 4096), -EREMOTEIO);
  EXPECT_EQ(driver.write_zeroes(0, 4096), -EREMOTEIO);
  EXPECT_EQ(driver.flush(), 0);
  EXPECT_EQ(driver.read(0, 512), Bytes(512));
}

TEST(Faults, EveryNthFlushFails) {
  auto backend = memory_with("flush-error-every=2");
  Driver driver(*backend);
  EXPECT_EQ(driver.flush(), 0);
  EXPECT_EQ(driver.flush(), -EIO);
}

TEST(Faults, ADelayedRequestWaitsForItsTimerAndThenCompletes) {
  auto backend = memory_with("delay-every=1,delay-ms=7");
  Driver driver(*backend);
  EXPECT_EQ(driver.write(0, pattern(0, 512, 1)), 0);
  ASSERT_EQ(driver.aio().records().size(), 1u);
  EXPECT_EQ(driver.aio().records()[0].kind, AioOp::Kind::kTimeout);
  EXPECT_EQ(driver.aio().records()[0].length, 7'000'000u);
  EXPECT_EQ(driver.read(0, 512), pattern(0, 512, 1));
}

TEST(Faults, AShortWriteLeavesTheRestUntouched) {
  auto backend = memory_with("short-every=1");
  Driver driver(*backend);
  Bytes data = pattern(0, 3 * 512, 1);
  EXPECT_EQ(driver.submit(Op::kWrite, 0, data.size(), {{data.data(), 700}, {&data[700], 836}}),
            512);
  Bytes want(data.begin(), data.begin() + 512);
  want.resize(3 * 512);
  EXPECT_EQ(driver.read(0, 3 * 512), want);
}

TEST(Faults, SpaceRunsOutAfterTheConfiguredNumberOfBytes) {
  auto backend = memory_with("enospc-after=8KiB");
  Driver driver(*backend);
  EXPECT_EQ(driver.write(0, Bytes(8192)), 0);
  EXPECT_EQ(driver.write(0, Bytes(512)), -ENOSPC);
  EXPECT_EQ(driver.write_zeroes(0, 512), -ENOSPC);
  EXPECT_EQ(driver.discard(0, 4096), 0);
  EXPECT_EQ(driver.read(0, 512), Bytes(512));
}

TEST(Faults, AVanishedMediumFailsEveryRequestAndItsCheck) {
  auto backend = memory_with("vanish-after=2");
  Driver driver(*backend);
  EXPECT_TRUE(backend->check().ok());
  EXPECT_EQ(driver.write(0, Bytes(512)), 0);
  EXPECT_EQ(driver.flush(), 0);
  EXPECT_THAT(backend->check().error(), HasSubstr("vanished"));
  EXPECT_EQ(driver.write(0, Bytes(512)), -ENODEV);
  EXPECT_EQ(driver.flush(), -ENODEV);
  EXPECT_EQ(backend->borrow(0, 512), nullptr) << "lent memory of a vanished medium";
}

TEST(FaultText, InvalidSpecificationsAreRefusedWithTheValidValues) {
  EXPECT_THAT(parse_faults("read-eror-every=1").error(), HasSubstr("'read-error-every'"));
  EXPECT_THAT(parse_faults("errno=EWHAT").error(), HasSubstr("EREMOTEIO"));
  EXPECT_THAT(parse_faults("delay-every=two").error(), HasSubstr("whole number"));
  EXPECT_THAT(parse_faults("enospc-after=1MB").error(), HasSubstr("MiB"));
  EXPECT_FALSE(parse_faults("delay-ms=99999999999999").ok());
  EXPECT_TRUE(parse_faults("").ok());
}

TEST(Faulty, TheFenceCheckIgnoresInjectedFaults) {
  auto backend = memory_with("vanish-after=0;delay-every=1;delay-ms=1");
  Driver driver(*backend);
  EXPECT_EQ(driver.submit(Op::kCheckFence, 0, 0), 0);
  EXPECT_TRUE(driver.aio().records().empty());
}

TEST(Faulty, AFailedAtomicWriteLeavesTheOldData) {
  auto backend = memory_with("atomic=8KiB;write-error-every=2");
  Driver driver(*backend);
  Bytes old(8192, 1), next(8192, 2);
  EXPECT_EQ(driver.submit(Op::kWrite, 0, 8192, {{old.data(), 8192}}, kIoAtomic), 8192);
  EXPECT_EQ(driver.submit(Op::kWrite, 0, 8192, {{next.data(), 8192}}, kIoAtomic), -EIO);
  EXPECT_EQ(driver.read(0, 8192), old);
}

TEST(Faulty, AnAtomicSizeThatIsNotAPowerOfTwoIsRefused) {
  EXPECT_FALSE(parse_faults("atomic=12KiB"));
  EXPECT_FALSE(parse_faults("atomic=0"));
}

}  // namespace
}  // namespace sluice::backend
