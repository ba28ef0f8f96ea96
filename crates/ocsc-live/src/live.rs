//! The page as its owner sees it: opened before a run, told what it is about, closed after it.

use crate::Unavailable;
use crate::board::{Board, Phase, Stop};
use crate::camera::Camera;
use crate::frame::{About, Frame};
use crate::listen::Listen;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the last picture may take to reach whoever looks.
const PARTING: Duration = Duration::from_secs(1);
/// What the system may need to send it after the server has handed it over.
const FLUSHING: Duration = Duration::from_millis(50);

/// A page that is being served.
pub struct Live {
    board: Arc<Board>,
    url: String,
}

impl Live {
    /// Serves the page of a run. `stop` is what its button does.
    pub fn of_run(listen: &Listen, stop: impl Fn() + Send + Sync + 'static) -> Result<Live, Unavailable> {
        Self::open(listen, Some(Box::new(stop)))
    }

    /// Serves a page that does not change.
    pub fn of_files(listen: &Listen, frame: Frame) -> Result<Live, Unavailable> {
        let live = Self::open(listen, None)?;
        live.board.put(Box::new(move || frame));
        Ok(live)
    }

    #[cfg(feature = "server")]
    fn open(listen: &Listen, stop: Option<Stop>) -> Result<Live, Unavailable> {
        let listener = listen.bind()?;
        let unable = |error: std::io::Error| Unavailable(format!("cannot serve a page: {error}"));
        let bound = listener.local_addr().map_err(unable)?;
        let token = crate::guard::token();
        let token = token.ok_or_else(|| Unavailable("the system gives no random numbers for a token".to_owned()))?;
        let (board, url) = (Arc::new(Board::new(stop)), listen.url(bound, &token));
        crate::server::start(listener, board.clone(), token, listen.is_private()).map_err(unable)?;
        Ok(Live { board, url })
    }

    #[cfg(not(feature = "server"))]
    fn open(_listen: &Listen, _stop: Option<Stop>) -> Result<Live, Unavailable> {
        Err(Unavailable("expected a program with the feature `live`, found one that was built without it".to_owned()))
    }

    /// Returns the address to open.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a camera for the run, which has begun `begun` samples before, of `total` where that is known.
    pub fn camera<'a>(&self, about: About, begun: usize, total: Option<usize>, passes: Option<usize>) -> Camera<'a> {
        self.board.set(|status| status.phase = Phase::Learning);
        Camera::new(self.board.clone(), about, begun, total, passes)
    }

    /// Waits until the last picture has reached whoever reads, but not for long. A page that is open keeps what it shows.
    pub fn close(self) {
        self.board.close();
        let end = Instant::now() + PARTING;
        if !self.board.is_watched() {
            return;
        }
        while self.board.lookers() > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(FLUSHING);
    }
}
