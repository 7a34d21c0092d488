// A reactor that stands still, under a clock that only the tests move (DESIGN R6).
#include "net/reactor.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>

namespace sluice::net {
namespace {

std::atomic<Nanos> simulated_now{1000 * kSecond};
Nanos simulated_clock() { return simulated_now; }
void pass(Nanos span) { simulated_now += span; }

constexpr Nanos kTooLong = limits::kStallLimit + 1;

class StandingStill : public testing::Test {
 protected:
  void SetUp() override {
    Reactor::Setup setup;
    setup.memory = limits::kMinReactorMemory;
    setup.gateway = &gateway_;
    setup.clock = simulated_clock;
    reactor_ = std::make_unique<Reactor>(setup);
    const Result<void> up = reactor_->start();
    if (!up) {
      reactor_.reset();
      GTEST_SKIP() << up.error();
    }
    file_ = memfd_create("disk", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file_, kBytes), 0);
  }
  void TearDown() override {
    if (reactor_ == nullptr) return;
    reactor_->stop(true);
    reactor_->join();
    close(file_);
  }

  // What came of `count` operations, one byte each, that were all submitted in one turn which
  // took `before` until then and `after` from then on.
  std::vector<int32_t> one_turn(AioOp::Kind kind, size_t count, Nanos before, Nanos after) {
    struct Batch {
      std::vector<AioOp> ops;
      std::vector<int32_t> results;
      std::promise<void> done;
    } batch;
    batch.ops.resize(count);
    iovec one{&byte_, 1};
    for (size_t i = 0; i < count; ++i) {
      AioOp& op = batch.ops[i];
      op.kind = kind;
      op.fd = file_;
      op.iov = &one;
      op.iovcnt = 1;
      op.offset = i;
      op.context = &batch;
      op.done = [](AioOp& self, int32_t result) {
        auto& mine = *static_cast<Batch*>(self.context);
        mine.results.push_back(result);
        if (mine.results.size() == mine.ops.size()) mine.done.set_value();
      };
    }
    reactor_->post([&] {
      pass(before);
      for (AioOp& op : batch.ops) reactor_->submit(op);
      pass(after);
    });
    batch.done.get_future().wait();
    return batch.results;
  }
  std::string content(size_t bytes) const {
    std::string out(bytes, '?');
    EXPECT_EQ(pread(file_, out.data(), bytes, 0), static_cast<ssize_t>(bytes));
    return out;
  }

  static constexpr off_t kBytes = 4 * limits::kRingEntries;
  iscsi::Gateway gateway_;
  std::unique_ptr<Reactor> reactor_;
  int file_ = -1;
  char byte_ = 'x';
};

TEST_F(StandingStill, AWriteHandedOverInTimeIsWritten) {
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 1, 0, limits::kStallLimit), std::vector<int32_t>{1});
  EXPECT_EQ(content(1), "x");
}

TEST_F(StandingStill, AWriteNotHandedOverInTimeIsTakenBack) {
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 3, 0, kTooLong), std::vector<int32_t>(3, -ECANCELED));
  EXPECT_EQ(content(3), std::string(3, '\0'));
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 3, 0, 0), std::vector<int32_t>(3, 1)) << "it goes on";
}

TEST_F(StandingStill, WritesThatOverfillTheRingAreTakenBackToo) {
  constexpr size_t kMany = 3 * limits::kRingEntries;
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, kMany, kTooLong, 0),
            std::vector<int32_t>(kMany, -ECANCELED));
  EXPECT_EQ(content(kMany), std::string(kMany, '\0'));
}

TEST_F(StandingStill, AReadHarmsNobody) {
  EXPECT_EQ(one_turn(AioOp::Kind::kReadv, 1, 0, kTooLong), std::vector<int32_t>{1});
}

TEST_F(StandingStill, EveryConnectionIsClosed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::promise<unsigned> open;
  reactor_->post([&] {
    reactor_->adopt(ends[0], {});
    open.set_value(reactor_->connections());
  });
  EXPECT_EQ(open.get_future().get(), 1u);
  reactor_->post([] { pass(kTooLong); });
  char byte = 0;
  EXPECT_EQ(read(ends[1], &byte, 1), 0) << "closed";
  close(ends[1]);
}

}  // namespace
}  // namespace sluice::net
