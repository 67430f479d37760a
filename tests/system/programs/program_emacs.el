;;; program_emacs.el VERB emacs FILES WORK HOST ARGUMENT...: the lock of a file that emacs edits. -*- lexical-binding: t -*-
;;
;; The verbs are those of program.sh. The file, WORK/edited, is shared by all hosts; its lock is a symbolic link in FILES.

(pcase-let ((`(,verb ,_program ,files ,work ,_host . ,arguments) command-line-args-left))
  (setq command-line-args-left nil
        lock-file-name-transforms `((".*" ,(concat files "/") t))
        backtrace-on-error-noninteractive nil)

  (defun attempt (action)
    "Edits the file; returns nil if somebody else does."
    (with-current-buffer (find-file-noselect (concat work "/edited"))
      (unwind-protect
          (condition-case problem
              (progn
                (set-buffer-modified-p t) ; as the first change does, it locks
                (unless (eq (file-locked-p buffer-file-name) t)
                  (error "Not locked"))
                (funcall action)
                (unlock-buffer)
                t)
            (error
             (unless (string-prefix-p "Cannot resolve lock conflict" (error-message-string problem))
               (signal (car problem) (cdr problem)))))
        (set-buffer-modified-p nil)
        (kill-buffer))))

  (defun increment ()
    (let ((counter (car arguments)) number)
      (with-temp-buffer
        (insert-file-contents counter)
        (setq number (string-to-number (buffer-string))))
      (sleep-for 0.003)
      (write-region (format "%d\n" (1+ number)) nil counter nil 'silent)))

  (pcase verb
    ("count"
     (dotimes (_ (string-to-number (cadr arguments)))
       (while (not (attempt #'increment))
         (sleep-for (+ 0.01 (/ (random 30) 1000.0))))))
    ("hold"
     (unless (attempt (lambda ()
                        (message "held")
                        (while (not (file-exists-p (car arguments)))
                          (sleep-for 0.02))))
       (error "Somebody has the lock"))
     (message "released"))
    ("try"
     ;; What it shows a person who visits the file.
     (let ((owner (with-current-buffer (find-file-noselect (concat work "/edited"))
                    (file-locked-p buffer-file-name))))
       (when (stringp owner)
         (message "locked by %s" owner))
       (kill-emacs (if (stringp owner) 1 0))))))
