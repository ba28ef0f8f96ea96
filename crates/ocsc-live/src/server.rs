//! The server: one thread with a runtime of its own, which draws pictures and sends them as server-sent events.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /events` | a stream: `frame` with all that the page shows, `status` every second |
//! | `POST /pause?on=true`, `POST /pause?on=false` | the run waits after its step, or goes on; needs the token |
//! | `POST /stop` | the run stops as after Ctrl-C; needs the token |

use crate::board::Board;
use crate::guard::{is_equal, is_ours};
use crate::page;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::Listener;
use futures_util::stream;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The most connections at a time. More wait: learning needs files of its own.
const CONNECTIONS: usize = 128;
/// The header that has the token of a button.
const TOKEN: &str = "x-ocsc-token";
/// How often a status is sent where nothing else is.
const STATUS: Duration = Duration::from_secs(1);

/// What all requests share.
struct Site {
    board: Arc<Board>,
    page: String,
    policy: HeaderValue,
    token: String,
    is_private: bool,
    /// The newest frame as an event; empty before the first.
    frames: watch::Sender<Bytes>,
}

/// Serves a page on a thread of its own, for as long as the process lives.
pub(crate) fn start(
    listener: std::net::TcpListener,
    board: Arc<Board>,
    token: String,
    is_private: bool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let (page, policy) = page::served(&token);
    let policy = HeaderValue::try_from(policy).map_err(io::Error::other)?;
    let (frames, _) = watch::channel(Bytes::new());
    let site = Arc::new(Site { board, page, policy, token, is_private, frames });
    let serving = move || {
        // The thread has nobody to tell of an error; the page does not answer then.
        let _ = runtime.block_on(async {
            let listener =
                Limited { inner: TcpListener::from_std(listener)?, room: Arc::new(Semaphore::new(CONNECTIONS)) };
            tokio::spawn(draw(site.clone()));
            axum::serve(listener, router(site)).await
        });
    };
    std::thread::Builder::new().name("ocsc-live".to_owned()).spawn(serving).map(drop)
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/events", get(events))
        .route("/pause", post(pause))
        .route("/stop", post(stop))
        .layer(from_fn_with_state(site.clone(), let_in))
        .with_state(site)
}

/// Draws pictures as they come, if anybody looks.
async fn draw(site: Arc<Site>) {
    loop {
        site.board.wait().await;
        if site.board.is_watched()
            && let Some(shot) = site.board.take()
        {
            let began = Instant::now();
            let frame = serde_json::to_string(&shot()).unwrap_or_default();
            site.board.set_drawing(began.elapsed());
            site.frames.send_replace(Bytes::from(format!("event: frame\ndata: {frame}\n\n")));
        } else if site.board.is_closing() {
            // Wakes the clients, which see it too.
            site.frames.send_modify(|_| ());
        }
    }
}

/// Lets requests in that name this server and, where others may connect or a button is pressed, have the token.
async fn let_in(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&site, &request) {
        Some(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, site.policy.clone());
    for (name, value) in [
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Says why a request is not let in.
fn refusal(site: &Site, request: &Request) -> Option<&'static str> {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST.as_str()).unwrap_or_default();
    let is_button = !matches!(request.method().as_str(), "GET" | "HEAD");
    let given = if is_button { text(TOKEN) } else { parameter(request.uri(), "token") };
    if !is_ours(host, site.is_private) {
        return Some("expected a Host of this server, such as localhost");
    }
    let needs_token = is_button || !site.is_private;
    (needs_token && !given.is_some_and(|given| is_equal(given, &site.token)))
        .then_some("expected the token of the page, which is in the address that the program printed")
}

/// Returns the value of a parameter of an address. The ones we know need no decoding.
fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    uri.query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

async fn index(State(site): State<Arc<Site>>) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], site.page.clone()).into_response()
}

async fn stop(State(site): State<Arc<Site>>) -> StatusCode {
    done(site.board.stop())
}

async fn pause(State(site): State<Arc<Site>>, uri: Uri) -> StatusCode {
    match parameter(&uri, "on") {
        Some("true") => done(site.board.pause(true)),
        Some("false") => done(site.board.pause(false)),
        _ => StatusCode::BAD_REQUEST,
    }
}

fn done(is_run: bool) -> StatusCode {
    if is_run { StatusCode::NO_CONTENT } else { StatusCode::CONFLICT }
}

/// Somebody who looks, until the connection is gone.
struct Looker {
    site: Arc<Site>,
    frames: watch::Receiver<Bytes>,
    /// Whether the last thing that will be sent was.
    is_last: bool,
}

impl Drop for Looker {
    fn drop(&mut self) {
        self.site.board.leave();
    }
}

impl Looker {
    fn new(site: Arc<Site>) -> Self {
        let mut frames = site.frames.subscribe();
        // One that is yet to be drawn comes soon; else the newest is there already.
        if !site.board.has_shot() {
            frames.mark_changed();
        }
        site.board.join();
        Looker { site, frames, is_last: false }
    }

    /// Returns what to send next, once there is something and the client has room. Frames in between are passed over.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.is_last {
            return None;
        }
        let is_new = matches!(tokio::time::timeout(STATUS, self.frames.changed()).await, Ok(Ok(())));
        let status = self.site.board.status();
        let frame = self.frames.borrow_and_update().clone();
        self.is_last = self.site.board.is_closing() && is_new;
        let status = serde_json::to_string(&status).unwrap_or_default();
        let mut event = format!("event: status\ndata: {status}\n\n").into_bytes();
        if is_new {
            event.splice(0..0, frame);
        }
        Some((Ok(Bytes::from(event)), self))
    }
}

async fn events(State(site): State<Arc<Site>>) -> Response {
    let looker = Looker::new(site);
    let body = Body::from_stream(stream::unfold(looker, Looker::next));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// A listener with a limited number of open connections.
struct Limited {
    inner: TcpListener,
    room: Arc<Semaphore>,
}

impl Listener for Limited {
    type Io = Held;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Held, SocketAddr) {
        // Nobody closes the semaphore.
        let place = self.room.clone().acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.inner).await;
        (Held { stream, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that has one of the places.
struct Held {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Held {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl AsyncWrite for Held {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
